// Pages of others, names of others, and texts that try to be markup.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { base, browser, open, page, problems, see, text, token } from "./support.mjs";

export default async function attack() {
  const port = new URL(base).port;
  const server = createServer((_, answer) => answer.setHeader("content-type", "text/html").end("<!doctype html><title>foreign</title>")).listen(0, "127.0.0.1");
  await new Promise((done) => server.once("listening", done));
  const context = await browser.newContext(), foreign = await context.newPage();
  foreign.setDefaultTimeout(30_000);
  for (const host of ["127.0.0.1", "localhost"]) {
    await foreign.goto(`http://${host}:${server.address().port}/`);
    const answers = await foreign.evaluate(async ([base, token]) => {
      const ask = async (path, init) => {
        try {
          const answer = await fetch(base + path, init);
          return `${answer.type} ${answer.status} ${(await answer.text()).length}`;
        } catch { return "refused"; }
      };
      const frame = document.createElement("iframe");
      frame.src = base;
      document.body.append(frame);
      await new Promise((done) => { frame.onload = frame.onerror = done; setTimeout(done, 5000); });
      let framed;
      try { framed = frame.contentDocument?.body?.innerHTML ?? "hidden"; } catch { framed = "hidden"; }
      return {
        call: await ask("api/prompts", { method: "POST", body: "{}" }),
        withToken: await ask("api/prompts", { method: "POST", body: "{}", headers: { Authorization: `Bearer ${token}` } }),
        blind: await ask("api/prompts", { method: "POST", body: "{}", mode: "no-cors" }),
        page: await ask("", {}),
        script: await new Promise((done) => { const script = document.createElement("script"); script.src = `${base}app.js`; script.onload = () => done("ran"); script.onerror = () => done("refused"); document.head.append(script); }),
        socket: await new Promise((done) => {
          const socket = new WebSocket(`${base.replace("http", "ws")}api/live`, ["cuebook", token]);
          socket.onopen = () => done("open");
          socket.onerror = () => done("refused");
        }),
        framed,
      };
    }, [base, token]);
    assert.deepEqual(answers, { call: "refused", withToken: "refused", blind: "opaque 0 0", page: "refused", script: "refused", socket: "refused", framed: "hidden" }, host);
  }
  // A name that someone else points at this machine.
  const rebound = await foreign.goto(`http://rebound.example:${port}/`);
  assert.equal(rebound.status(), 403);
  await context.close();
  server.close();

  // Markup in a prompt, its file names, its values and its cases is text.
  const value = "<b onmouseover=alert(1)>x</b><script>document.title='owned'</script>";
  await open(`prompt=hostile&values=${encodeURIComponent(JSON.stringify({ name: value }))}`);
  await see(text.getByText("<b onmouseover=alert(1)>x</b>"));
  await see(text.getByText("Kind."));
  for (const tab of ["text", "messages", "wire", "tokens", "problems", "tools", "diff", "tests"]) {
    await page.locator(`#tab-${tab}`).click();
    await see(page.locator("#panel"));
    assert.equal(await page.locator("main img:not([alt]), main script, main b b, main iframe").count(), 0, tab);
  }
  await see(page.locator("option").getByText("<img src=x onerror=alert(2)>").or(page.getByLabel("Fill from a test case")));
  await page.locator("#tab-text").click();
  await text.getByText("Kind.").hover();
  await see(page.locator(".origin").getByText(/partials\/<img src=x onerror=alert\(4\)>\.md:1/));
  assert.doesNotMatch(await page.title(), /owned/);

  // A hostile link changes nothing but what is shown.
  await open(`prompt=${encodeURIComponent("<img src=x onerror=alert(3)>")}&tab=${encodeURIComponent("<x>")}&values=nonsense&view=nowhere&visibility=[1]`);
  await see(page.getByRole("tree"));
  await see(page.locator(".failure"));
  // The policy keeps out what would get past all this.
  const before = problems.length;
  const injected = await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "document.title = 'owned'";
    document.body.append(script);
    return document.title;
  });
  assert.doesNotMatch(injected, /owned/);
  await page.waitForTimeout(200);
  const refused = problems.splice(before);
  assert.ok(refused.length > 0 && refused.every((one) => /script-src|inline script/.test(one)), refused.join("\n"));
}
