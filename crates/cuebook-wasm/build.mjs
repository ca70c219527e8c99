// Builds the package: the module with cargo, the rest with the TypeScript compiler.
//
//   node build.mjs [--pack] [--profile PROFILE] [--out FOLDER] [--module FILE] [--modules FOLDER]
//
// `--module` names a module that exists, instead of a profile of cargo. `--modules` is where `typescript` is. Cargo needs the target
// `wasm32-unknown-unknown`.

import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

/** What the package for Node has, too. */
const SHARED = ["bodies.ts", "errors.ts", "options.ts", "types.ts", "values.ts"];

const here = dirname(fileURLToPath(import.meta.url));
const { values: given } = parseArgs({
  options: {
    pack: { type: "boolean", default: false },
    profile: { type: "string", default: "wasm" },
    out: { type: "string" },
    module: { type: "string" },
    modules: { type: "string", default: join(here, "node_modules") },
  },
});
const target = process.env.CARGO_TARGET_DIR ?? resolve(here, "../../target");
const out = resolve(given.out ?? join(target, "npm/cuebook-wasm"));

function run(program, words) {
  execFileSync(program, words, { cwd: here, stdio: "inherit" });
}

function builtModule() {
  run("cargo", ["build", "--profile", given.profile, "--target", "wasm32-unknown-unknown", "-p", "cuebook-wasm"]);
  return join(target, "wasm32-unknown-unknown", given.profile, "cuebook_wasm.wasm");
}

const module = given.module ? resolve(given.module) : builtModule();
const sources = join(out, "sources");
rmSync(join(out, "lib"), { recursive: true, force: true });
rmSync(sources, { recursive: true, force: true });
mkdirSync(sources, { recursive: true });
copyFileSync(module, join(out, "cuebook.wasm"));
for (const file of readdirSync(join(here, "package"))) {
  copyFileSync(join(here, "package", file), join(sources, file));
}
for (const file of SHARED) {
  copyFileSync(join(here, "../cuebook-node/package", file), join(sources, file));
}
const { rootDirs: _, ...compilerOptions } = JSON.parse(readFileSync(join(here, "tsconfig.json"), "utf8")).compilerOptions;
writeFileSync(join(sources, "tsconfig.json"), JSON.stringify({ compilerOptions: { ...compilerOptions, rootDir: ".", outDir: "../lib" } }));
run(process.execPath, [join(resolve(given.modules), "typescript/bin/tsc"), "-p", sources]);
copyFileSync(join(sources, "wasm.d.ts"), join(out, "lib/wasm.d.ts"));
rmSync(sources, { recursive: true });

copyFileSync(join(here, "README.md"), join(out, "README.md"));
const manifest = JSON.parse(readFileSync(join(here, "package.json"), "utf8"));
delete manifest.devDependencies;
writeFileSync(join(out, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
if (given.pack) {
  const [{ filename, size }] = JSON.parse(execFileSync("npm", ["pack", "--json", out], { encoding: "utf8" }));
  console.log(`${filename}: ${(size / 1e6).toFixed(1)} MB`);
}
