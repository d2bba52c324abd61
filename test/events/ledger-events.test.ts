import { expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { until } from "../support/until.ts";
import { startWebhookReceiver, webhookSecret } from "../support/webhook-receiver.ts";

const hello = { model: "chat-model", messages: [{ role: "user", content: "Hello" }] };

function webhook(url: string, more = ""): Record<string, string> {
  const settings = `{ url: "${url}", secret: ${webhookSecret}, longest_pause: 1s${more} }`;
  return { ledger: `{ flush_interval: 10ms, events: { webhook: ${settings} } }` };
}

function idOf(line: string): string {
  return z.object({ id: z.string() }).parse(JSON.parse(line)).id;
}

/** Makes calls one after the other; returns their ids. */
async function call(gateway: TestGateway, times: number): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let index = 0; index < times; index += 1) {
    const response = await gateway.post("/v1/chat/completions", hello);
    await response.text();
    ids.push(response.headers.get("x-request-id") ?? "");
  }
  return ids;
}

test("each row of the ledger is one event, signed, in the form of the admin API", async () => {
  await using receiver = startWebhookReceiver();
  await using gateway = await startGateway({ sections: webhook(receiver.url) });
  const ids = await call(gateway, 5);
  await until(() => receiver.rows.length >= 5);
  expect(receiver.rows.map(({ id }) => id)).toEqual([...ids]);
  const answer = await gateway.admin("GET", "/admin/v1/usage/calls?since=1h");
  const body: unknown = await answer.json();
  expect(body).toMatchObject({ data: receiver.rows.toReversed() });
});

test("events wait for a receiver that fails or redirects, and repeats have the same id", async () => {
  await using receiver = startWebhookReceiver();
  receiver.status = 500;
  await using gateway = await startGateway({ sections: webhook(receiver.url) });
  const ids = await call(gateway, 1);
  await until(() => receiver.messages.length > 1);
  receiver.status = 307;
  const seen = receiver.messages.length;
  await until(() => receiver.messages.length > seen);
  expect(new Set(receiver.messages).size).toBe(1);
  const more = await call(gateway, 3);
  receiver.status = 200;
  await until(() => receiver.rows.length >= 4);
  expect(receiver.rows.map(({ id }) => id)).toEqual([...ids, ...more]);
  const message = "events of the ledger cannot be delivered; they wait";
  expect(gateway.log.filter((line) => line.includes(message))).toHaveLength(1);
  await until(() => gateway.log.some((line) => line.includes("delivered again")));
  expect(gateway.log.join("\n")).not.toContain(webhookSecret);
});

test("events that nobody took are delivered after a restart", async () => {
  await using receiver = startWebhookReceiver();
  receiver.status = 503;
  const folder = mkdtempSync(join(tmpdir(), "sluice-events-"));
  const sections = {
    ...webhook(receiver.url, ", batch: 2"),
    data_dir: JSON.stringify(folder),
    storage: `{ url: "sqlite:${folder}/sluice.db" }`,
  };
  const first = await startGateway({ sections });
  const ids = await call(first, 5);
  await first[Symbol.asyncDispose]();
  expect(receiver.rows).toEqual([]);
  receiver.status = 200;
  await using second = await startGateway({ sections });
  const more = await call(second, 1);
  await until(() => receiver.rows.length >= 6);
  expect(receiver.rows.map(({ id }) => id)).toEqual([...ids, ...more]);
  rmSync(folder, { recursive: true, force: true });
});

test("a file gets a line for each row, and is renamed when it is large", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-events-"));
  const path = join(folder, "usage.ndjson");
  const ledger = `{ flush_interval: 10ms, batch_rows: 50, events: { file: { path: "${path}", rotate_size: 64KiB } } }`;
  await using gateway = await startGateway({ sections: { ledger } });
  const ids = await call(gateway, 250);
  await gateway.app.flushUsage();
  const names = readdirSync(folder).toSorted(
    (one, other) => other.length - one.length || (one < other ? -1 : 1),
  );
  expect(names.length).toBeGreaterThan(1);
  const lines = names.flatMap((name) =>
    readFileSync(join(folder, name), "utf8").trim().split("\n"),
  );
  expect(lines.map(idOf)).toEqual([...ids]);
  rmSync(folder, { recursive: true, force: true });
});

test("while events cannot be written, rows wait in the spool and none is lost", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-events-"));
  const path = join(folder, "later", "usage.ndjson");
  const ledger = `{ flush_interval: 10ms, events: { file: { path: "${path}" } } }`;
  await using gateway = await startGateway({ sections: { ledger } });
  const ids = await call(gateway, 3);
  await until(() => gateway.log.some((line) => line.includes("usage cannot be stored")));
  mkdirSync(join(folder, "later"));
  await until(() => existsSync(path) && readFileSync(path, "utf8").split("\n").length > 3);
  const got = readFileSync(path, "utf8").trim().split("\n").map(idOf);
  expect([...new Set(got)]).toEqual([...ids]);
  rmSync(folder, { recursive: true, force: true });
});
