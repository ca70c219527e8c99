// A model of this process: a server in the form of OpenAI's chat API, and the provider that names it.

import { mkdirSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after } from "node:test";

import { home } from "./projects.js";

/** Starts a server until the tests of the file have ended, as the provider of a name. */
export async function serveModel(provider: string, model: string, listener: RequestListener): Promise<void> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  mkdirSync(join(home, ".ai/config/providers"), { recursive: true });
  writeFileSync(
    join(home, `.ai/config/providers/${provider}.yaml`),
    `name: ${provider}
api: openai-chat
base_url: http://127.0.0.1:${port}/v1
tiers: {fast: ${model}, general: ${model}, high: ${model}}
models:
  ${model}: {context_window: 32000, max_output: 4096, price: {input: 1, output: 10}}
`,
  );
}
