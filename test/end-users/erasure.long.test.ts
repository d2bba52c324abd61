import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startGateway, type TestGateway } from "../support/gateway.ts";

let folder: string;
let gateway: TestGateway;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "sluice-erasure-"));
  gateway = await startGateway({
    sections: {
      storage: `{ url: "sqlite:${folder}/sluice.db" }`,
      ledger: `{ events: { file: { path: "${folder}/events.ndjson" } } }`,
    },
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

const account = async (): Promise<string> => (await gateway.usage())[0]?.accountId ?? "";

async function ask(user: string): Promise<void> {
  const body = { model: "chat-model", messages: [{ role: "user", content: "Hi" }], user };
  const response = await gateway.post("/v1/chat/completions", body);
  const text = await response.text();
  expect([response.status, text]).toEqual([200, text]);
}

async function admin<Answer>(path: string, body: object): Promise<Answer> {
  const response = await gateway.admin(
    "POST",
    `/admin/v1/accounts/${await account()}${path}`,
    body,
  );
  const answer: unknown = await response.json();
  expect([response.status, answer]).toEqual([200, answer]);
  return answer as Answer;
}

interface Found {
  readonly data: readonly { name: string; end_user: string; calls: number; cost_usd: string }[];
}

/** The files below a folder that have one of these texts. */
function filesWith(root: string, texts: readonly string[]): readonly string[] {
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter((path) => texts.some((text) => readFileSync(path).includes(text)));
}

test("an erased end user is in no file and no log, and its calls and sums stay", async () => {
  const name = "jane.doe@example.com";
  // Rows of others, so that pages are split and written again.
  for (let round = 0; round < 60; round += 1) {
    await Promise.all([0, 1, 2, 3, 4].map((other) => ask(`other-${other}`)));
    if (round % 3 === 0) await ask(name);
    if (round % 10 === 0) await gateway.usage();
  }
  await gateway.usage();
  const { data } = await admin<Found>("/end-users", { names: [name, "nobody"] });
  expect(data.map((found) => [found.name, found.calls])).toEqual([
    [name, 20],
    ["nobody", 0],
  ]);
  const pseudonym = data[0]?.end_user ?? "";
  const { data: ofPseudonym } = await admin<Found>("/end-users", { names: [pseudonym] });
  expect(ofPseudonym.map(({ calls }) => calls)).toContain(20);
  expect(filesWith(folder, [pseudonym])).not.toEqual([]);
  const texts = [name, pseudonym];
  const accountId = await account();
  const total = async () => (await gateway.admin("GET", "/admin/v1/usage/totals")).json();
  const before = await total();
  expect(await admin<object>("/erase-end-user", { name })).toEqual({ erased: true, calls: 20 });
  expect(filesWith(folder, texts)).toEqual([]);
  // Nor can the note of it be found by trying names.
  const digests = texts.map((text) => {
    return createHash("sha256").update(`${accountId}\n${text}`).digest("hex");
  });
  expect(filesWith(folder, digests)).toEqual([]);
  // Spool files go once they are stored and no limit needs them, some seconds later.
  const { dataDir } = gateway.config;
  const deadline = Date.now() + 30_000;
  while (filesWith(dataDir, texts).length > 0 && Date.now() < deadline) await Bun.sleep(50);
  expect(filesWith(dataDir, texts)).toEqual([]);
  expect(gateway.log.filter((line) => texts.some((text) => line.includes(text)))).toEqual([]);
  const { data: sums } = (await total()) as { data: { calls: number }[] };
  expect(sums).toEqual((before as { data: { calls: number }[] }).data);
  const rows = await gateway.usage();
  expect(rows).toHaveLength(320);
  expect(rows.filter(({ endUser }) => endUser === undefined)).toHaveLength(20);
  const audit = await (await gateway.admin("GET", "/admin/v1/audit")).text();
  expect(audit).toContain("usage.erase_end_user");
  for (const text of texts) expect(audit).not.toContain(text);
  // It may come back.
  await ask(name);
  const { data: again } = await admin<Found>("/end-users", { names: [name] });
  expect(again[0]).toMatchObject({ end_user: pseudonym, calls: 1 });
}, 180_000);

test("erasing takes nothing from other accounts, and nothing of one may be erased by a guess", async () => {
  await ask("shared-name");
  const { text: key } = await gateway.createKey({ account: "another-account" });
  const body = {
    model: "chat-model",
    messages: [{ role: "user", content: "Hi" }],
    user: "shared-name",
  };
  const headers = { authorization: `Bearer ${key}` };
  expect((await gateway.post("/v1/chat/completions", body, { headers })).status).toBe(200);
  const [other] = await gateway.usage();
  const mine = (await gateway.usage()).find(({ accountId }) => accountId !== other?.accountId);
  const path = `/admin/v1/accounts/${mine?.accountId}/erase-end-user`;
  for (const name of ["shared-name", other?.endUser ?? ""]) {
    await (await gateway.admin("POST", path, { name })).json();
  }
  const [still] = await gateway.usage();
  expect(still?.endUser).toBe(other?.endUser);
});

test("a file of events has no name, however short, and each line is JSON", async () => {
  const path = join(folder, "clear.ndjson");
  await using clear = await startGateway({
    sections: { end_users: "clear", ledger: `{ events: { file: { path: "${path}" } } }` },
  });
  const headers = { authorization: `Bearer ${clear.key}` };
  for (const user of ["x", "xy"]) {
    const body = { model: "chat-model", messages: [{ role: "user", content: "Hi" }], user };
    const response = await clear.post("/v1/chat/completions", body, { headers });
    const text = await response.text();
    expect([response.status, text]).toEqual([200, text]);
  }
  const [row] = await clear.usage();
  const erasing = `/admin/v1/accounts/${row?.accountId}/erase-end-user`;
  const erased = await clear.admin("POST", erasing, { name: "x" });
  expect(await erased.json()).toEqual({ erased: true, calls: 1 });
  const lines = readFileSync(path, "utf8").trimEnd().split("\n");
  const events = lines.map((line) => JSON.parse(line) as { end_user: string });
  expect(events.map((event) => event.end_user)).toEqual(["", "xy"]);
});
