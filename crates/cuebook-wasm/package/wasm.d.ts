// The type of `import compiled from "cuebook-wasm/cuebook.wasm"` in runtimes that compile such a file.

declare const compiled: object;
export default compiled;
