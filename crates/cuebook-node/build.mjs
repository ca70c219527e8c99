// Builds the package: the addon and the command with cargo, the rest with the TypeScript compiler.
//
//   node build.mjs [--pack] [--profile PROFILE] [--out FOLDER] [--native FOLDER] [--modules FOLDER]
//
// `--native` names a folder with an addon and a command that exist, instead of a profile of cargo. `--modules` is where `typescript` and
// `@types/node` are.

import { execFileSync } from "node:child_process";
import { copyFileSync, cpSync, existsSync, linkSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

/** The bytes of a packed package that is shipped, at most. */
const MOST = 15e6;

const here = dirname(fileURLToPath(import.meta.url));
const { values: given } = parseArgs({
  options: {
    pack: { type: "boolean", default: false },
    profile: { type: "string", default: "dist" },
    out: { type: "string" },
    native: { type: "string" },
    modules: { type: "string", default: join(here, "node_modules") },
  },
});
const target = process.env.CARGO_TARGET_DIR ?? resolve(here, "../../target");
const out = resolve(given.out ?? join(target, "npm/cuebook"));

function run(program, words, folder = here) {
  execFileSync(program, words, { cwd: folder, stdio: "inherit" });
}

function builtNative() {
  // A release also reads and writes Parquet.
  const features = given.profile === "dist" ? ["--features", "cuebook-cli/batch-parquet"] : [];
  run("cargo", ["build", "--profile", given.profile, "-p", "cuebook-node", "-p", "cuebook-cli", ...features]);
  return join(target, given.profile === "dev" ? "debug" : given.profile);
}

/** The newest of several files of a folder: `cargo test` leaves libraries in `deps`, and `cargo build` also beside it. */
function find(folder, ...names) {
  const found = names.map((name) => join(folder, name)).filter((path) => existsSync(path));
  if (found.length === 0) {
    throw new Error(`${folder} has none of ${names.join(", ")}`);
  }
  return found.sort((one, other) => statSync(other).mtimeMs - statSync(one).mtimeMs)[0];
}

/** A file at another place, without a copy of its bytes if that is possible. */
function place(from, to) {
  try {
    linkSync(from, to);
  } catch {
    copyFileSync(from, to);
  }
}

const native = given.native ? resolve(given.native) : builtNative();
for (const part of ["lib", "native", "bin"]) {
  rmSync(join(out, part), { recursive: true, force: true });
}
mkdirSync(join(out, "native"), { recursive: true });
const addons = ["libcuebook_node.so", "libcuebook_node.dylib", "cuebook_node.dll"];
place(find(native, ...addons, ...addons.map((name) => join("deps", name))), join(out, "native/cuebook.node"));
const command = find(native, "cuebook", "cuebook.exe");
place(command, join(out, "native", command.endsWith(".exe") ? "cuebook.exe" : "cuebook"));

const modules = resolve(given.modules);
const compiler = join(modules, "typescript/bin/tsc");
run(process.execPath, [compiler, "-p", here, "--outDir", join(out, "lib"), "--typeRoots", join(modules, "@types")]);

cpSync(join(here, "bin"), join(out, "bin"), { recursive: true });
copyFileSync(join(here, "README.md"), join(out, "README.md"));
const manifest = JSON.parse(readFileSync(join(here, "package.json"), "utf8"));
delete manifest.devDependencies;
// The compiled parts are for this kind of machine.
Object.assign(manifest, { os: [process.platform], cpu: [process.arch] });
writeFileSync(join(out, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
if (given.pack) {
  const [{ filename, size }] = JSON.parse(execFileSync("npm", ["pack", "--json", out], { encoding: "utf8" }));
  const megabytes = `${filename}: ${(size / 1e6).toFixed(1)} MB`;
  if (given.profile === "dist" && size > MOST) {
    rmSync(filename);
    throw new Error(`${megabytes}, which is more than ${MOST / 1e6} MB: leave out what made it larger`);
  }
  console.log(megabytes);
}
