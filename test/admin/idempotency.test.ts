import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { createApp } from "../support/app.ts";
import { readLocalAccess } from "../../src/control/sign-in/bootstrap/local-access.ts";
import { holdDatabase } from "../failures/database-holder.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { bearer, nobody, sendAs, sessionOf, type AdminAnswer } from "./admin-caller.ts";

const p = "/admin/v1";
const wish = "a wish that nobody may guess 5b1f";

let folder: string;
let clock: ManualClock;
let gateway: TestGateway;
let bootstrapTokens: string[];
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "sluice-idempotency-"));
  mkdirSync(join(folder, "database"));
  clock = new ManualClock({ wallMs: Date.now() });
  const storage = `{ url: "sqlite:${join(folder, "database", "sluice.db")}" }`;
  bootstrapTokens = [];
  const onBootstrapToken = ({ text }: { text: string }): void => void bootstrapTokens.push(text);
  gateway = await startGateway({
    sections: { storage },
    overrides: { clock, onBootstrapToken },
  });
});
afterEach(async () => {
  await gateway[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

async function ask(
  path: string,
  body: unknown,
  { key = wish, adminUrl = gateway.adminUrl, dataDir = gateway.config.dataDir } = {},
): Promise<AdminAnswer> {
  const local = readLocalAccess(dataDir);
  const headers = { authorization: `Bearer ${local?.token}`, "idempotency-key": key };
  return sendAs(adminUrl, { method: "POST", path: p + path, body }, { headers, changeHeaders: {} });
}

interface Rotated {
  readonly api_key: string;
  readonly key: { readonly secrets: readonly { readonly status: string }[] };
}

const rotated = ({ text }: AdminAnswer): Rotated => JSON.parse(text) as Rotated;

async function auditedAs(action: string): Promise<number> {
  const response = await gateway.admin("GET", `${p}/audit?action=${action}&limit=500`);
  return ((await response.json()) as { data: unknown[] }).data.length;
}

test("ten equal rotations at once are one rotation with one answer", async () => {
  const { id } = await gateway.createKey();
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => ask(`/keys/${id}/rotate`, { overlap_seconds: 60 })),
  );
  expect(answers.map(({ status }) => status)).toEqual(Array<number>(10).fill(201));
  expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
  const replayed = answers.filter(({ headers }) => headers.get("idempotent-replayed") === "true");
  expect(replayed.length).toBe(9);
  expect(await auditedAs("key.rotate")).toBe(1);
  const [first] = answers;
  if (first === undefined) throw new Error("nothing was answered");
  expect(rotated(first).key.secrets.length).toBe(2);
  const { status } = await gateway.get("/v1/models", bearer(rotated(first).api_key));
  expect(status).toBe(200);
});

test("ten equal rotations at once at two gateways of one database are one rotation", async () => {
  const dataDir = join(folder, "second");
  const config = { ...gateway.config, dataDir };
  const second = await createApp(config, { clock });
  try {
    const { id } = await gateway.createKey();
    const there = { adminUrl: second.adminUrl, dataDir };
    // All have looked for an earlier answer before any of them may write.
    await using holder = await holdDatabase(gateway.config.storage.path, "write");
    const asked = Array.from({ length: 10 }, (_, index) =>
      ask(`/keys/${id}/rotate`, {}, index % 2 === 0 ? {} : there),
    );
    await Bun.sleep(500);
    await holder.release();
    const answers = await Promise.all(asked);
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    expect(answers[0]?.status).toBe(201);
    expect(await auditedAs("key.rotate")).toBe(1);
  } finally {
    await second[Symbol.asyncDispose]();
  }
});

test("ten equal requests at once make one account, one application, one user and one key each", async () => {
  const tenTimes = async (path: string, body: unknown, key: string): Promise<AdminAnswer> => {
    const answers = await Promise.all(Array.from({ length: 10 }, () => ask(path, body, { key })));
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    const [answer] = answers;
    if (answer?.status !== 201) throw new Error(answer?.text);
    return answer;
  };
  const account = await tenTimes("/accounts", { name: "one" }, "a");
  const { id: account_id } = JSON.parse(account.text) as { id: string };
  const wanted = { account_id, environment: "test", name: "one" };
  const application = await tenTimes("/applications", wanted, "b");
  const { id: application_id } = JSON.parse(application.text) as { id: string };
  await tenTimes("/keys", { application_id, plan: "standard" }, "c");
  await tenTimes("/users", { email: "one@example.com", role: "auditor" }, "d");
  for (const action of ["application.create", "user.create"]) {
    expect([action, await auditedAs(action)]).toEqual([action, action === "user.create" ? 1 : 2]);
  }
});

test("after a restart, the same request gets the same answer, and another one 422", async () => {
  const { id } = await gateway.createKey();
  const path = `/keys/${id}/rotate`;
  const before = await ask(path, { overlap_seconds: 60 });
  expect(before.status).toBe(201);
  await gateway.app[Symbol.asyncDispose]();
  const again = await createApp(gateway.config, { clock });
  try {
    const { adminUrl } = again;
    const after = await ask(path, { overlap_seconds: 60 }, { adminUrl });
    expect([after.status, after.text]).toEqual([201, before.text]);
    expect(after.headers.get("idempotent-replayed")).toBe("true");
    const other = await ask(path, { overlap_seconds: 61 }, { adminUrl });
    expect([other.status, other.code]).toEqual([422, "idempotency_key_reused"]);
    const elsewhere = await ask("/leaks", { api_keys: ["x"] }, { adminUrl });
    expect([elsewhere.status, elsewhere.code]).toEqual([422, "idempotency_key_reused"]);
    const response = await fetch(`${again.dataUrl}/v1/models`, bearer(rotated(after).api_key));
    expect(response.status).toBe(200);
  } finally {
    await again[Symbol.asyncDispose]();
  }
});

test("a new secret is shown again for ten minutes, and its rotation is never done twice", async () => {
  const { id } = await gateway.createKey();
  const path = `/keys/${id}/rotate`;
  const first = await ask(path, {});
  clock.advance(10 * 60_000 - 1);
  expect((await ask(path, {})).text).toBe(first.text);
  clock.advance(1);
  const late = await ask(path, {});
  expect([late.status, late.code]).toEqual([409, "reply_not_shown_again"]);
  expect(late.text).not.toContain("sk-slc_");
  clock.advance(23 * 3_600_000);
  expect((await ask(path, {})).status).toBe(409);
  expect(await auditedAs("key.rotate")).toBe(1);
  clock.advance(3_600_000);
  expect((await ask(path, {})).status).toBe(201);
  expect(await auditedAs("key.rotate")).toBe(2);
});

test("a request that was refused is done when it is asked again with the same key", async () => {
  const { id } = await gateway.createKey();
  const path = `/keys/${id}/rotate`;
  const wrong = await ask(path, { overlap_seconds: -1 });
  expect(wrong.status).toBe(400);
  expect((await ask(path, { overlap_seconds: 1 })).status).toBe(201);
  for (const key of ["", "x".repeat(201), "caf\u00e9"]) {
    const refused = await ask("/accounts", { name: "never" }, { key });
    expect([key.length, refused.status]).toEqual([key.length, 400]);
  }
});

test("what one user asked for is not told to another who sends the same key", async () => {
  const credential = {
    email: "root@example.com",
    password: "seven quiet otters read",
    token: bootstrapTokens[0] ?? "",
  };
  const signedUp = await sendAs(
    gateway.adminUrl,
    { method: "POST", path: `${p}/bootstrap`, body: credential },
    nobody,
  );
  const session = sessionOf(gateway.adminUrl, signedUp);
  const { id } = await gateway.createKey();
  const path = `/keys/${id}/rotate`;
  const first = await ask(path, {});
  const second = await sendAs(
    gateway.adminUrl,
    { method: "POST", path: p + path, body: {} },
    { ...session, headers: { ...session.headers, "idempotency-key": wish } },
  );
  expect(second.status).toBe(201);
  expect(rotated(second).api_key).not.toBe(rotated(first).api_key);
});

/** Every byte of every file that the gateway has written. */
function writtenBytes(): Buffer {
  const roots = [join(folder, "database"), gateway.config.dataDir];
  const files = roots.flatMap((root) =>
    readdirSync(root, { recursive: true }).map((name) => join(root, String(name))),
  );
  const contents = files
    .filter((file) => statSync(file).isFile())
    .map((file) => readFileSync(file));
  return Buffer.concat(contents);
}

test("no file has the secret of a key, its digest's input or the Idempotency-Key", async () => {
  const { id } = await gateway.createKey();
  const first = rotated(await ask(`/keys/${id}/rotate`, {}));
  const body = { model: "embedding-model", input: "a prompt of the canary 9e41" };
  const { headers } = bearer(first.api_key);
  expect((await gateway.post("/v1/embeddings", body, { headers })).status).toBe(200);
  await gateway.usage();
  const bytes = writtenBytes();
  expect(bytes.includes(id)).toBe(true);
  const publicId = first.api_key.slice(7, 15);
  expect(bytes.includes(publicId)).toBe(true);
  const secret = first.api_key.slice(16);
  for (const text of [secret, secret.slice(0, 43), secret.slice(0, 20), wish, "canary 9e41"]) {
    expect([text, bytes.includes(text)]).toEqual([text, false]);
    const encoded = Buffer.from(text);
    for (const form of ["hex", "base64", "base64url"] as const) {
      // The last group of base64 depends on what follows.
      const written = encoded.toString(form).slice(0, -4);
      expect([form, bytes.includes(written)]).toEqual([form, false]);
    }
  }
  expect(dirname(gateway.config.storage.path)).toBe(join(folder, "database"));
});
