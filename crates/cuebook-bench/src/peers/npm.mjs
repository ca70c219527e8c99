// Packages of npm that render: one JSON request per line in, one JSON answer per line out.
//
//   node npm.mjs PACKAGE             answers requests
//   node npm.mjs --import PACKAGE    prints the nanoseconds that its import takes
//
// {"load": {"file": path, "template": text, "handlebars": text, "values": {…}, "rows": n}} answers with the text, or with the messages.
// {"time": "render"} answers with the nanoseconds of one call, measured here, "import" with those of an import in a new process, and
// "batch" and "table" with those of one row.

import { execFileSync } from 'node:child_process';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const TURN = 1_000_000n;
const [word, second] = process.argv.slice(2);

const PEERS = {
  async cuebook({ file, values, rows = 0 }) {
    const { Book } = await import('cuebook');
    const book = Book.open(dirname(dirname(file)));
    const render = () => book.render('case', values).text;
    const text = render();
    if (rows === 0) return { answer: { text }, render };
    const arrow = await import('apache-arrow');
    const list = Array.from({ length: rows }, () => values);
    const column = (value) => arrow.vectorFromArray(Array.from({ length: rows }, () => value), new arrow.Utf8());
    const table = new arrow.Table(Object.fromEntries(Object.entries(values).map(([name, value]) => [name, column(value)])));
    const timed = async (given) => {
      const started = process.hrtime.bigint();
      const texts = await book.renderBatch('case', given, { threads: 1 });
      const taken = process.hrtime.bigint() - started;
      if (texts.length !== rows || texts.some((one) => one !== text)) throw new Error('a row has another text');
      return Number(taken) / rows;
    };
    return { answer: { text }, render, batch: () => timed(list), table: () => timed(table) };
  },

  async nunjucks({ template, values }) {
    const { default: nunjucks } = await import('nunjucks');
    const compiled = nunjucks.compile(template, new nunjucks.Environment(null, { autoescape: false }));
    const render = () => compiled.render(values);
    return { answer: { text: render() }, render };
  },

  async handlebars({ handlebars: file, values }) {
    const { default: Handlebars } = await import('handlebars');
    // The file has front matter and helpers of dotprompt.
    Handlebars.registerHelper('role', (name) => `${name === 'model' ? 'assistant' : name}:`);
    Handlebars.registerHelper('unlessEquals', function (one, other, { fn }) {
      return one === other ? '' : fn(this);
    });
    const compiled = Handlebars.compile(file.replace(/^---\n.*?\n---\n/s, ''), { noEscape: true });
    const render = () => compiled(values);
    return { answer: { text: render() }, render };
  },

  async '@prompty/core'({ file, values }) {
    const { load, prepare } = await import('@prompty/core');
    const agent = await load(file);
    const render = () => prepare(agent, values);
    const text = ({ content, parts }) => content ?? parts.map((part) => part.value ?? part.text).join('');
    const messages = (await render()).map((message) => ({ role: message.role, content: text(message) }));
    return { answer: { messages }, render };
  },
};

/** The nanoseconds of one call. Calls that return promises are awaited. */
async function time(render) {
  const waits = typeof render()?.then === 'function';
  const started = process.hrtime.bigint();
  let calls = 0;
  let now = started;
  while (now - started < TURN) {
    for (let call = 0; call < 8; call += 1) {
      if (waits) await render();
      else render();
    }
    calls += 8;
    now = process.hrtime.bigint();
  }
  return Number(now - started) / calls;
}

let loaded;

async function answer({ load, time: what }) {
  if (load) {
    loaded = await PEERS[word](load);
    return loaded.answer;
  }
  if (what === 'import') return Number(execFileSync(process.execPath, [fileURLToPath(import.meta.url), '--import', word]));
  return what === 'render' ? time(loaded.render) : loaded[what]();
}

if (word === '--import') {
  const started = process.hrtime.bigint();
  await import(second);
  process.stdout.write(String(process.hrtime.bigint() - started));
} else {
  for await (const line of createInterface({ input: process.stdin })) {
    const said = await answer(JSON.parse(line)).catch((error) => ({ failed: String(error) }));
    process.stdout.write(`${JSON.stringify(said)}\n`);
  }
}
