import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { refusalSchema, type RefusalView } from "../../src/control/contract/refusals.ts";
import { parseStream } from "../support/bodies.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { bearer, Operator } from "../support/operator.ts";

/** The explanation of a refused request; undefined if there is none. */
async function refusalOf(gateway: TestGateway, id: string): Promise<RefusalView | undefined> {
  const response = await gateway.admin("GET", `/admin/v1/refusals/${id}`);
  return response.ok ? refusalSchema.parse(await response.json()) : undefined;
}

async function refused(gateway: TestGateway, text: string): Promise<RefusalView> {
  const response = await gateway.get("/v1/models", bearer(text));
  expect(response.status).toBe(401);
  await response.text();
  const found = await refusalOf(gateway, response.headers.get("x-request-id") ?? "");
  if (found === undefined) throw new Error("the refusal is not explained");
  return found;
}

interface EndedKey {
  readonly id: string;
  readonly text: string;
  /** The rule in the explanations of its refusals. */
  readonly rule: string;
  /** The key as the control plane shows it. */
  readonly endedAt: string | null;
}

/** One key for each way in which keys and secrets end. */
async function endKeys(gateway: TestGateway): Promise<readonly EndedKey[]> {
  const operator = new Operator(gateway);
  const named = (name: string) => gateway.createKey({ account: name, application: name });
  const read = async (path: string): Promise<{ disabled_at: string | null }> =>
    (await (await gateway.admin("GET", path)).json()) as { disabled_at: string | null };
  const ends: EndedKey[] = [];
  const add = (rule: string, key: { id: string; text: string }, endedAt: string | null): void =>
    void ends.push({ rule, ...key, endedAt });

  const revoked = await gateway.createKey();
  await operator.revoke(revoked.id);
  add("key_revoked", revoked, (await operator.key(revoked.id)).revoked_at);
  const disabled = await gateway.createKey();
  await operator.change(`/admin/v1/keys/${disabled.id}`, { disabled: true });
  add("key_disabled", disabled, (await operator.key(disabled.id)).disabled_at);
  const ofApplication = await named("application");
  const application = `/admin/v1/applications/${(await operator.key(ofApplication.id)).application_id}`;
  await operator.change(application, { disabled: true });
  add("application_disabled", ofApplication, (await read(application)).disabled_at);
  const ofAccount = await named("account");
  const account = `/admin/v1/accounts/${(await operator.key(ofAccount.id)).account_id}`;
  await operator.change(account, { disabled: true });
  add("account_disabled", ofAccount, (await read(account)).disabled_at);
  const expired = await gateway.createKey({ expiresAt: Date.now() - 1_000 });
  add("key_expired", expired, (await operator.key(expired.id)).expires_at);

  const endOf = async (id: string, text: string): Promise<string | null> => {
    const { secrets } = await operator.key(id);
    return secrets.find(({ hint }) => text.startsWith(hint))?.expires_at ?? null;
  };
  const rotated = await gateway.createKey();
  await operator.rotate(rotated.id, { compromised: true });
  add("secret_ended", rotated, await endOf(rotated.id, rotated.text));
  const leaked = await gateway.createKey();
  await gateway.admin("POST", "/admin/v1/leaks", { api_keys: [leaked.text] });
  add("secret_ended", leaked, await endOf(leaked.id, leaked.text));
  const ended = await gateway.createKey();
  await operator.rotate(ended.id);
  const path = `/admin/v1/keys/${ended.id}/secrets/${ended.text.slice(7, 15)}`;
  expect((await gateway.admin("DELETE", path)).status).toBe(200);
  add("secret_ended", ended, await endOf(ended.id, ended.text));
  return ends;
}

async function expectExplained(gateway: TestGateway, ends: readonly EndedKey[]): Promise<void> {
  for (const { id, text, rule, endedAt } of ends) {
    const refusal = await refused(gateway, text);
    expect([refusal.rule, refusal.key_id]).toEqual([rule, id]);
    expect(endedAt).not.toBeNull();
    expect(refusal.summary).toContain(endedAt ?? "");
  }
}

test("a key or secret that ended is explained by how and when, also after a restart", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-test-"));
  const sections = { storage: JSON.stringify({ url: `sqlite:${join(folder, "sluice.db")}` }) };
  let ends: readonly EndedKey[];
  {
    await using gateway = await startGateway({ sections });
    ends = await endKeys(gateway);
    await expectExplained(gateway, ends);
  }
  await using again = await startGateway({ sections });
  await expectExplained(again, ends);
  rmSync(folder, { recursive: true, force: true });
});

test("all 401s are the same for callers", async () => {
  await using gateway = await startGateway();
  const shapes = new Set<string>();
  for (const { text } of await endKeys(gateway)) {
    const response = await gateway.get("/v1/models", bearer(text));
    const body = (await response.text()).replaceAll(/sk-slc_\S+/g, "KEY");
    shapes.add(`${response.status} ${response.headers.get("www-authenticate")} ${body}`);
  }
  expect([...shapes]).toHaveLength(1);
});

const models = `
  steady:
    kind: chat
    context_window: 200000
    max_output_tokens: 64000
    targets: [{ upstream: simulator, model: sound }]
  cut:
    kind: chat
    context_window: 200000
    max_output_tokens: 64000
    targets: [{ upstream: simulator, model: fault-error-event-mid-stream }]`;

/** An open stream whose first piece was read. */
async function openStream(gateway: TestGateway, key: string, model: string) {
  const messages = [{ role: "user", content: "count: 100000" }];
  const body = { model, stream: true, messages };
  const response = await gateway.post("/v1/chat/completions", body, bearer(key));
  expect(response.status).toBe(200);
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  const first: Uint8Array | undefined = (await reader?.read())?.value;
  let text = decoder.decode(first, { stream: true });
  const rest = async (): Promise<string> => {
    for (;;) {
      const piece: Uint8Array | undefined = (await reader?.read())?.value;
      if (piece === undefined) return text;
      text += decoder.decode(piece, { stream: true });
    }
  };
  return { id: response.headers.get("x-request-id") ?? "", rest };
}

test("a stream that ended with its key is explained by the key's end", async () => {
  await using gateway = await startGateway({
    simulator: { tokensPerSecond: 200 },
    sections: { models },
  });
  const operator = new Operator(gateway);
  const names = { account: "one", application: "one" };
  const [revoked, disabled, owned] = [
    await gateway.createKey(),
    await gateway.createKey(),
    await gateway.createKey(names),
  ];
  const application = (await operator.key(owned.id)).application_id;
  for (const [key, rule, end] of [
    [revoked, "key_revoked", () => operator.revoke(revoked.id)],
    [
      disabled,
      "key_disabled",
      () => operator.change(`/admin/v1/keys/${disabled.id}`, { disabled: true }),
    ],
    [
      owned,
      "application_disabled",
      () => operator.change(`/admin/v1/applications/${application}`, { disabled: true }),
    ],
  ] as const) {
    const stream = await openStream(gateway, key.text, "steady");
    expect(await refusalOf(gateway, stream.id)).toBeUndefined();
    expect(await end()).toBe(200);
    const { chunks } = parseStream(await stream.rest());
    expect(chunks.at(-1)?.error?.code).toBe("invalid_api_key");
    const refusal = await refusalOf(gateway, stream.id);
    const known = { status: 401, code: "invalid_api_key", model: "steady", key_id: key.id };
    expect(refusal).toMatchObject({ rule, ...known });
    expect(refusal?.summary).toContain("while it ran");
  }
});

test("a stream that its provider cut is no refusal", async () => {
  await using gateway = await startGateway({ sections: { models } });
  const stream = await openStream(gateway, gateway.key, "cut");
  expect(parseStream(await stream.rest()).chunks.at(-1)?.error?.code).toBe("model_unavailable");
  expect(await refusalOf(gateway, stream.id)).toBeUndefined();
  const rows = await gateway.usage();
  expect(rows.map(({ id, outcome }) => [id, outcome])).toEqual([[stream.id, "failed"]]);
});
