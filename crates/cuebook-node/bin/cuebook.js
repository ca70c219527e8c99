#!/usr/bin/env node
// The command line. The program is that of this package; this file only finds it.
"use strict";

const { spawn } = require("node:child_process");
const { join } = require("node:path");

const name = process.platform === "win32" ? "cuebook.exe" : "cuebook";
const program = spawn(join(__dirname, "..", "native", name), process.argv.slice(2), { stdio: "inherit" });
// A terminal sends Ctrl-C to both; what another process sends is passed on. The program decides when it ends.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => signal === "SIGINT" || program.kill(signal));
}
program.on("error", (error) => {
  console.error(`cuebook cannot start: ${error.message}`);
  process.exit(1);
});
program.on("exit", (code, signal) => {
  if (signal === null) {
    process.exit(code);
  }
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
