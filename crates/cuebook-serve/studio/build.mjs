// Builds the page of `cuebook studio` into assets/: `npm install && npm run build`. The assets are committed, so that users need no
// Node. sources.sha256 records what they were built from; a test compares it with the sources.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const options = { bundle: true, minify: true, format: "esm", target: "es2022", write: false, legalComments: "none", charset: "utf8" };
const script = await build({ ...options, entryPoints: ["src/main.tsx"], jsx: "automatic", jsxImportSource: "preact" });
// A worker, which is a script of its own.
const line = await build({ ...options, entryPoints: ["src/line.ts"] });
const style = await build({ ...options, entryPoints: ["src/style.css"] });

// Without a time in the header, the same sources give the same bytes.
const compressed = (built) => gzipSync(built.outputFiles[0].contents, { level: 9 });
writeFileSync("assets/app.js.gz", compressed(script));
writeFileSync("assets/line.js.gz", compressed(line));
writeFileSync("assets/app.css.gz", compressed(style));
writeFileSync("assets/index.html", readFileSync("src/index.html"));

const files = ["build.mjs", "package.json", ...readdirSync("src").sort().map((name) => `src/${name}`)];
const hash = createHash("sha256");
for (const file of files) hash.update(`${file}\0`).update(readFileSync(file)).update("\0");
writeFileSync("assets/sources.sha256", `${hash.digest("hex")}\n`);
