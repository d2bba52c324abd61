import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ensureApplication, issueKey } from "../support/issue-key.ts";
import { readLocalAccess } from "../../src/control/sign-in/bootstrap/local-access.ts";
import { createApp, type App } from "../support/app.ts";
import { formatProblems, parseConfig } from "../../src/config/load.ts";
import { noLog } from "../../src/telemetry/log/log-output.ts";
import { pepperOf } from "../support/test-peppers.ts";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "sluice-rotation-"));
});

afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

/** The gateway with these peppers, on what the one before has left. */
async function start(...peppers: readonly string[]): Promise<Gateway> {
  const list = peppers.map((name) => JSON.stringify(pepperOf(name).reveal())).join(", ");
  const text = `
listen: { data: "127.0.0.1:0", admin: "127.0.0.1:0" }
data_dir: ${folder}
storage: { url: "sqlite:${folder}/sluice.db" }
auth: { peppers: [${list}] }
environments: [{ name: test, hosts: ["*"], models: ["*"] }]
upstreams: { local: { kind: openai, base_url: "http://127.0.0.1:9/v1" } }
models:
  alpha-sonnet-4:
    { kind: chat, context_window: 1000, targets: [{ upstream: local, model: any }] }
`;
  const parsed = parseConfig(text, { name: "test", env: {} });
  if (!parsed.ok) throw new Error(formatProblems("test", parsed.problems));
  return new Gateway(await createApp(parsed.config, { log: noLog }));
}

class Gateway implements AsyncDisposable {
  readonly app: App;

  constructor(app: App) {
    this.app = app;
  }

  async newKey(application: string): Promise<string> {
    const names = { account: "default", application, environment: "test" };
    const { id: applicationId } = await ensureApplication(this.app.admin, names);
    const { text } = await issueKey(this.app.admin, { applicationId, plan: "standard" });
    await this.app.admin.onKeysChanged();
    return text;
  }

  async call(key: string): Promise<number> {
    const headers = { authorization: `Bearer ${key}` };
    return (await fetch(`${this.app.dataUrl}/v1/models`, { headers })).status;
  }

  async admin(method: string, path: string, request: AdminRequest = {}): Promise<Answer> {
    const token = request.token ?? readLocalAccess(folder)?.token ?? "";
    const response = await fetch(`${this.app.adminUrl}/admin/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        "content-type": "application/json",
        ...(request.key !== undefined && { "idempotency-key": request.key }),
      },
      ...(request.body !== undefined && { body: JSON.stringify(request.body) }),
    });
    return { status: response.status, body: (await response.json()) as Answer["body"] };
  }

  /** Live secrets and tokens by the role of their pepper, once they are as many as expected. */
  async uses(expected: Readonly<Record<string, readonly number[]>>): Promise<unknown> {
    let found: Record<string, readonly unknown[]> = {};
    for (let look = 0; look < 200; look += 1) {
      const { body } = await this.admin("GET", "/peppers");
      const { data } = body as { data: { role: string; secrets: number; tokens: number }[] };
      found = Object.fromEntries(data.map((each) => [each.role, [each.secrets, each.tokens]]));
      if (Bun.deepEquals(found, expected)) break;
      await Bun.sleep(20);
    }
    return found;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.app[Symbol.asyncDispose]();
  }
}

interface AdminRequest {
  readonly token?: string;
  readonly key?: string;
  readonly body?: unknown;
}

interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

test("a pepper is rotated without a refusal, and given up when nothing hangs on it any more", async () => {
  const first = await start("old");
  const used = await first.newKey("used");
  const unused = await first.newKey("unused");
  const user = await first.admin("POST", "/users", {
    body: { email: "ada@example.com", role: "operator" },
  });
  const issued = await first.admin("POST", "/tokens", {
    body: { name: "script", user_id: user.body["id"] },
  });
  const token = String(issued.body["secret"]);
  const repeated = { key: "make it once", body: { name: "made once" } };
  const made = await first.admin("POST", "/accounts", repeated);
  expect([user.status, issued.status, made.status]).toEqual([201, 201, 201]);
  await first[Symbol.asyncDispose]();

  const both = await start("new", "old");
  expect(await both.uses({ first: [0, 0], older: [2, 1] })).toEqual({
    first: [0, 0],
    older: [2, 1],
  });
  expect(await both.call(used)).toBe(200);
  expect((await both.admin("GET", "/session", { token })).status).toBe(200);
  expect((await both.admin("POST", "/accounts", repeated)).body).toEqual(made.body);
  const renewed = { first: [1, 1], older: [1, 0] };
  expect(await both.uses(renewed)).toEqual(renewed);
  expect(await both.call(used)).toBe(200);
  await both[Symbol.asyncDispose]();

  await using last = await start("new");
  expect(await last.call(used)).toBe(200);
  expect((await last.admin("GET", "/session", { token })).status).toBe(200);
  expect(await last.call(unused)).toBe(401);
  const left = { first: [1, 1], not_configured: [1, 0] };
  expect(await last.uses(left)).toEqual(left);
  expect((await last.admin("GET", "/audit/verify")).body["is_intact"]).toBe(true);
});

test("a pepper that is taken out of the list before its time is refused where nothing knows the new one", async () => {
  await (await start("old"))[Symbol.asyncDispose]();
  expect(start("new")).rejects.toThrow("was used with another pepper");
});
