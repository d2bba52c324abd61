import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { generateKeyPairSync, sign, type KeyObject } from "node:crypto";
import { AdminFixture } from "../../../test/support/admin-fixture.ts";
import { SignInHarness } from "../../../test/support/sign-in-harness.ts";
import { generateApiKey } from "../../domain/keys/api-key.ts";
import { generateManagementToken } from "../../domain/accounts/management-token.ts";
import { tokenOf, userOf } from "../../../test/contracts/control-fixtures.ts";
import { labelledReportSchema, leakLabelsSchema } from "../contract/leak-reports.ts";
import { ReportKeys } from "./report-keys.ts";
import type { LeakSummary } from "../services.ts";
import { signedLeakReports } from "./signed-leak-reports.ts";

const path = "/admin/v1/leaks/signed-reports";
const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const pem = publicKey.export({ type: "spki", format: "pem" }).toString();

let admin: AdminFixture;
let summaries: LeakSummary[];

beforeEach(() => {
  admin = new AdminFixture();
  summaries = [];
});

afterEach(() => admin[Symbol.asyncDispose]());

async function newKey(): Promise<string> {
  const account = await admin.account();
  const application = await admin.application(account.name);
  return (await admin.issue(application.id)).text;
}

async function newToken(): Promise<string> {
  const { publicId, text } = generateManagementToken(admin.services.random);
  const expiresAt = admin.clock.now() + 1_000;
  await admin.services.store.change(async (to) => {
    await to.users.insert(userOf("ada"));
    const digest = admin.services.peppers.first.digest(text);
    await to.tokens.insert(tokenOf("tok_1", "ada", { publicId, digest, expiresAt }));
    await to.tokens.insert(
      tokenOf("tok_2", "ada", { publicId: "child", parentId: "tok_1", expiresAt }),
    );
  });
  return text;
}

const url = "https://github.example/commit/1";
const leakOf = (token: string) => ({ token, type: "sluice", url, source: "content" });

interface Sending {
  readonly revokes?: boolean;
  readonly keys?: ReportKeys;
  readonly by?: KeyObject;
  readonly keyId?: string;
  /** The body to send instead of the signed one. */
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends a signed report over the real dispatch. */
async function send(leaks: unknown, sending: Sending = {}): Promise<Response> {
  const { revokes: revokesLeaks = false, by = privateKey, keyId = "key-1" } = sending;
  const keys =
    sending.keys ??
    new ReportKeys({ publicKeysUrl: undefined, publicKeys: { "key-1": pem } }, admin.clock);
  const onLeaksReported = (summary: LeakSummary): void => void summaries.push(summary);
  const services = { ...admin.services, revokesLeaks, onLeaksReported };
  await using harness = new SignInHarness({ routes: [signedLeakReports(services, keys)] });
  const signed = JSON.stringify(leaks);
  const signature = sign("sha256", Buffer.from(signed), by).toString("base64");
  const request = new Request(harness.publicUrl + path, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "github-public-key-identifier": keyId,
      "github-public-key-signature": signature,
      ...sending.headers,
    },
    body: sending.text ?? signed,
  });
  return await harness.send(request);
}

const labelsOf = async (response: Response): Promise<readonly string[]> =>
  leakLabelsSchema.parse(await response.json()).map(({ label }) => label);
const actions = async (): Promise<readonly string[]> =>
  (await admin.audit()).map(({ action }) => action);

describe("a signed report", () => {
  test("labels all items in order, and audits our credentials without ending them", async () => {
    const [key, token] = [await newKey(), await newToken()];
    const unknown = generateApiKey(admin.services.random).text;
    const near = `${key.slice(0, 16)}${unknown.slice(16)}`;
    const leaks = [unknown, key, "no key", token, near].map(leakOf);
    const response = await send(leaks);
    expect(response.status).toBe(200);
    const answer = leakLabelsSchema.parse(await response.json());
    expect(answer).toEqual(
      leaks.map(({ token: text, type }, index) => ({
        token_raw: text,
        token_type: type,
        label: index === 1 || index === 3 ? "true_positive" : "false_positive",
      })),
    );
    const [ofToken, ofKey] = await admin.audit();
    expect([ofKey?.action, ofToken?.action]).toEqual(["key.leak_reported", "token.leak_reported"]);
    expect(ofKey?.actor).toEqual({ kind: "system", id: undefined, name: "secret scanning" });
    expect(ofKey?.after).toMatchObject({ url, source: "content" });
    expect(JSON.stringify(await admin.audit())).not.toContain(key);
    expect(summaries).toEqual([{ truePositives: 2, falsePositives: 3, ended: 0 }]);
    const { secrets, tokens } = await admin.services.store.pepperUse(admin.clock.now());
    expect([[...secrets.values()], [...tokens.values()]]).toEqual([[1], [2]]);
  });

  test("ends live credentials once if configured, with the tokens that they made", async () => {
    const leaks = [await newKey(), await newToken()].map(leakOf);
    expect(await labelsOf(await send(leaks, { revokes: true }))).toEqual([
      "true_positive",
      "true_positive",
    ]);
    const { secrets, tokens } = await admin.services.store.pepperUse(admin.clock.now());
    expect([secrets.size, tokens.size]).toEqual([0, 0]);
    expect(admin.keyChanges).toBeGreaterThan(0);
    expect((await actions()).slice(0, 4).toSorted()).toEqual([
      "key.leak",
      "key.leak_reported",
      "token.leak",
      "token.leak_reported",
    ]);
    // An ended credential is still one of this gateway's.
    expect(await labelsOf(await send(leaks, { revokes: true }))).toEqual([
      "true_positive",
      "true_positive",
    ]);
    expect(summaries.map(({ ended }) => ended)).toEqual([2, 0]);
  });

  test("is refused without a signature of a configured key over these bytes", async () => {
    const leaks = [leakOf(await newKey())];
    const before = await actions();
    const stranger = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
    const otherCurve = generateKeyPairSync("ec", { namedCurve: "P-384" });
    const onOtherCurve = new ReportKeys(
      {
        publicKeysUrl: undefined,
        publicKeys: {
          "key-1": otherCurve.publicKey.export({ type: "spki", format: "pem" }).toString(),
        },
      },
      admin.clock,
    );
    const wrong: readonly Sending[] = [
      { by: stranger },
      { keyId: "key-2" },
      { keyId: "__proto__" },
      { text: `${JSON.stringify(leaks)} ` },
      { headers: { "github-public-key-signature": "AAAA" } },
      { headers: { "github-public-key-signature": "" } },
      { keys: onOtherCurve, by: otherCurve.privateKey },
    ];
    for (const sending of wrong) expect((await send(leaks, sending)).status).toBe(401);
    expect(await actions()).toEqual(before);
    expect((await send([{ token: 7 }])).status).toBe(400);
  });
});

describe("published keys", () => {
  interface Page {
    readonly keys: ReportKeys;
    readonly asked: () => number;
    readonly publish: (...ids: readonly string[]) => void;
  }

  async function withPage(run: (page: Page) => Promise<void>): Promise<void> {
    let asked = 0;
    let ids: readonly string[] = ["key-1"];
    using server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch() {
        asked += 1;
        if (ids.length === 0) return new Response("x".repeat(100_000));
        const keys = ids.map((id) => ({ key_identifier: id, key: pem, is_current: true }));
        return Response.json({ public_keys: keys });
      },
    });
    const publicKeysUrl = `http://127.0.0.1:${server.port}/keys`;
    await run({
      keys: new ReportKeys({ publicKeysUrl, publicKeys: {} }, admin.clock),
      asked: () => asked,
      publish: (...published) => (ids = published),
    });
  }

  test("are loaded once, and again for an unknown one, at most once a minute", async () => {
    await withPage(async ({ keys, asked, publish }) => {
      const leaks = [leakOf("any")];
      const statuses = await Promise.all([1, 2, 3].map(() => send(leaks, { keys })));
      expect(statuses.map(({ status }) => status)).toEqual([200, 200, 200]);
      expect(asked()).toBe(1);
      publish("key-1", "key-2");
      for (let turn = 0; turn < 5; turn += 1) {
        expect((await send(leaks, { keys, keyId: "key-2" })).status).toBe(401);
      }
      expect(asked()).toBe(1);
      admin.clock.advance(60_000);
      expect((await send(leaks, { keys, keyId: "key-2" })).status).toBe(200);
      expect(asked()).toBe(2);
    });
  });

  test("end within an hour of their withdrawal, and an invalid page changes nothing", async () => {
    await withPage(async ({ keys, publish }) => {
      const leaks = [leakOf("any")];
      expect((await send(leaks, { keys })).status).toBe(200);
      publish();
      admin.clock.advance(120_000);
      expect((await send(leaks, { keys, keyId: "key-9" })).status).toBe(401);
      expect((await send(leaks, { keys })).status).toBe(200);
      publish("key-3");
      admin.clock.advance(3_600_000);
      expect((await send(leaks, { keys })).status).toBe(401);
    });
  });
});

test("without keys a signed-in operator may report", async () => {
  const body = { leaks: [leakOf(await newKey())] };
  const { data } = await admin.run(labelledReportSchema, "reportFoundLeaks", { body });
  expect(data.map(({ label }) => label)).toEqual(["true_positive"]);
  expect((await actions())[0]).toBe("key.leak_reported");
});
