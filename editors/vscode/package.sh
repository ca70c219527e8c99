#!/bin/sh
# Builds, tests and packages the extension as editors/vscode/cuebook.vsix.
set -eu
cd "$(dirname "$0")"
npm install --no-audit --no-fund
npm test
npm run package
