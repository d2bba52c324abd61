import { afterAll, beforeAll, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { RawConnection } from "./raw-connection.ts";

/** How connections live and end: keep-alive, pipelines, hosts. */

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({
    sections: {
      http: `{ idle_timeout: 1s, body_limit: 4MiB }`,
      environments: `
  - { name: test, hosts: ["*"], models: ["*"] }
  - { name: other, hosts: [other.example], models: [chat-model] }`,
    },
  });
});
afterAll(async () => {
  expect(gateway.log.filter((line) => line.includes(`"level":"error"`))).toEqual([]);
  await gateway[Symbol.asyncDispose]();
});

const hello = { model: "chat-model", messages: [{ role: "user", content: "echo: hi" }] };

function get(path: string, headers = "Host: models.example\r\n"): string {
  return `GET ${path} HTTP/1.1\r\n${headers}Authorization: Bearer ${gateway.key}\r\n\r\n`;
}

function postHead(headers: string): string {
  return (
    "POST /v1/chat/completions HTTP/1.1\r\nHost: models.example\r\n" +
    `Content-Type: application/json\r\nAuthorization: Bearer ${gateway.key}\r\n${headers}\r\n`
  );
}

function post(request: object): string {
  const body = JSON.stringify(request);
  return `${postHead(`Content-Length: ${body.length}\r\n`)}${body}`;
}

test("the Host header names the environment, not the host of the target", async () => {
  using connection = await RawConnection.open(gateway.port);
  connection.write(get("http://other.example/v1/models"));
  expect((await connection.answer())?.status).toBe(200);
  connection.write(get("http://models.example/v1/models", "Host: other.example\r\n"));
  const refused = await connection.answer();
  expect(refused?.status).toBe(401);
  connection.write(get("//models.example/v1/models", "Host: other.example\r\n"));
  expect((await connection.answer())?.status).toBe(400);
});

test("requests sent at once are answered in their order, each with its own id", async () => {
  using connection = await RawConnection.open(gateway.port);
  connection.write(get("/v1/models") + get("/healthz") + get("/nope") + get("/v1/models/x"));
  const statuses: (number | undefined)[] = [];
  const ids = new Set<string | null | undefined>();
  for (let index = 0; index < 4; index += 1) {
    const answer = await connection.answer();
    statuses.push(answer?.status);
    ids.add(answer?.headers.get("x-request-id"));
  }
  expect(statuses).toEqual([200, 200, 404, 404]);
  expect(ids.size).toBe(4);
});

test("many calls are served on one connection, streams among them", async () => {
  using connection = await RawConnection.open(gateway.port);
  for (let index = 0; index < 20; index += 1) {
    const isStreamed = index % 2 === 0;
    connection.write(post({ ...hello, stream: isStreamed }));
    const answer = await connection.answer();
    expect(answer?.status).toBe(200);
    if (isStreamed) expect(answer?.body.endsWith("data: [DONE]\n\n")).toBe(true);
  }
});

test("a body larger than a megabyte is asked for with 100 Continue and then served", async () => {
  const padding = " ".repeat(1_100_000);
  const body = JSON.stringify({ ...hello, messages: [{ role: "user", content: `hi${padding}` }] });
  using connection = await RawConnection.open(gateway.port);
  connection.write(postHead(`Expect: 100-continue\r\nContent-Length: ${body.length}\r\n`));
  expect((await connection.answer())?.status).toBe(100);
  connection.write(body);
  const answer = await connection.answer();
  expect(answer?.status).toBe(200);
  expect(answer?.body).toContain(`"chat.completion"`);
});

test("an idle connection is closed after any answer", async () => {
  const requests = [
    get("/healthz"),
    get("/v1/models"),
    get("/nope"),
    post(hello),
    post({ ...hello, stream: true }),
    post({ ...hello, model: "nobody" }),
  ];
  const connections = await Promise.all(
    requests.map(async (request) => {
      const connection = await RawConnection.open(gateway.port);
      connection.write(request);
      expect(await connection.answer()).toBeDefined();
      return connection;
    }),
  );
  await Promise.all(connections.map((connection) => connection.closed()));
}, 180_000);
