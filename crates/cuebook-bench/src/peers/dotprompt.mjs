// dotprompt as a peer: one JSON request per line in, one JSON answer per line out.
//
// {"load": {"handlebars": text, "values": {…}}} answers with the messages. {"time": "messages"} answers with the nanoseconds of one
// call, measured here. {"library": folder, "values": {…}} reads and renders every file of a folder. `--once FILE VALUES` renders a file and ends.

import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Dotprompt } from 'dotprompt';

const TURN = 1_000_000n;
const dotprompt = new Dotprompt();
let loaded;

function plain(rendered) {
  const text = (message) => message.content.map((part) => part.text).join('');
  const role = (message) => (message.role === 'model' ? 'assistant' : message.role);
  return rendered.messages.map((message) => ({ role: role(message), content: text(message) }));
}

async function load({ handlebars, values }) {
  const render = await dotprompt.compile(handlebars);
  loaded = () => render({ input: values });
  return { messages: plain(await loaded()) };
}

async function time() {
  const started = process.hrtime.bigint();
  let calls = 0;
  let now = started;
  while (now - started < TURN) {
    for (let call = 0; call < 8; call += 1) await loaded();
    calls += 8;
    now = process.hrtime.bigint();
  }
  return Number(now - started) / calls;
}

async function library(folder, values) {
  const started = process.hrtime.bigint();
  let prompts = 0;
  for (const name of readdirSync(folder)) {
    const render = await dotprompt.compile(readFileSync(join(folder, name), 'utf8'));
    await render({ input: values });
    prompts += 1;
  }
  return { prompts, nanoseconds: Number(process.hrtime.bigint() - started) };
}

async function answer(line) {
  const request = JSON.parse(line);
  if (request.library) return library(request.library, request.values);
  if (request.load) return load(request.load);
  return time();
}

const [once, file, values] = process.argv.slice(2);
if (once === '--once') {
  const { messages } = await load({ handlebars: readFileSync(file, 'utf8'), values: JSON.parse(values) });
  process.stdout.write(messages.map(({ role, content }) => `${role}:\n${content.trim()}\n`).join('\n'));
} else {
  for await (const line of createInterface({ input: process.stdin })) {
    const said = await answer(line).catch((error) => ({ failed: String(error) }));
    process.stdout.write(`${JSON.stringify(said)}\n`);
  }
}
