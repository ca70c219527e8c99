// Passes requests on to a server with its token, which the suite cannot send: node with-token.mjs PORT SERVER-PORT
import http from "node:http";

const [port, server] = process.argv.slice(2);
const renamed = (text) => text?.replace(`:${port}`, `:${server}`);

http
  .createServer((asked, answer) => {
    const headers = { ...asked.headers, authorization: `Bearer ${process.env.CUEBOOK_TOKEN}` };
    for (const name of ["host", "origin"]) {
      if (name in headers) headers[name] = renamed(headers[name]);
    }
    const options = { host: "127.0.0.1", port: server, path: asked.url, method: asked.method, headers };
    const passed = http.request(options, (got) => {
      answer.writeHead(got.statusCode, got.headers);
      got.pipe(answer);
    });
    passed.on("error", () => answer.destroy());
    answer.on("close", () => passed.destroy());
    asked.pipe(passed);
  })
  .listen(Number(port), "127.0.0.1");
