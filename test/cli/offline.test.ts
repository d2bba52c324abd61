import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { apiKeyPattern } from "../../src/domain/keys/api-key.ts";
import { runSluice } from "../support/sluice-process.ts";
import { runHere } from "./run-here.ts";
import { createFolder, idsOf, type JsonRecord, type SluiceFolder } from "./sluice-folder.ts";

let folder: SluiceFolder;
beforeAll(() => {
  folder = createFolder({ isOffline: true });
});
afterAll(() => folder[Symbol.dispose]());

describe("accounts", () => {
  test("are made, found by name, changed, stopped and started", async () => {
    const made = await folder.json("accounts", "create", "First Shop", "--max-keys", "3");
    expect(made).toMatchObject({ name: "First Shop", max_keys: 3, disabled_at: null });
    const shown = await folder.run("accounts", "show", "First Shop");
    expect(shown.output).toContain(String(made["id"]));
    const changed = await folder.json("accounts", "update", "First Shop", "--plans", "pilot,pro");
    expect(changed).toMatchObject({ plans: ["pilot", "pro"], max_keys: 3 });
    expect((await folder.run("accounts", "disable", "First Shop")).errors).toContain("disabled");
    expect((await folder.json("accounts", "show", "First Shop"))["disabled_at"]).toBeString();
    await folder.json("accounts", "enable", String(made["id"]));
    expect((await folder.json("accounts", "show", "First Shop"))["disabled_at"]).toBeNull();
  });

  test("have several budgets for the same only if that is told", async () => {
    await folder.json("accounts", "create", "Saver");
    const create = (...more: string[]) =>
      folder.run("budgets", "create", "--account", "Saver", "--limit-usd", "5", ...more);
    expect((await create("--period", "month")).errors).not.toContain("already");
    expect((await create("--period", "week")).errors).not.toContain("already");
    expect((await create("--period", "month", "--model", "alias")).errors).not.toContain("already");
    expect((await create("--period", "month")).errors).toMatch(
      /\nSaver already has bgt_\w+ of 5\.000000000 USD for the same calls and period, and both apply/,
    );
  });

  test("have budgets that messages describe, and that need an owner", async () => {
    await folder.json("accounts", "create", "Spender");
    const wanted = ["budgets", "create", "--limit-usd", "7.50", "--period", "month"];
    expect((await folder.run(...wanted)).errors).toContain(
      "Missing required option: --account. You can see all accounts, so name the one it is for, or " +
        "an application or a key by --application or --key.",
    );
    const { id } = await folder.json(...wanted, "--account", "Spender");
    const { errors } = await folder.run("budgets", "delete", String(id));
    expect(errors).toContain(
      `Budget ${String(id)} of 7.5 USD a month for account 'Spender' is deleted.`,
    );
    const each = await folder.json(...wanted, "--account", "Spender", "--each-end-user");
    expect((await folder.run("budgets", "delete", String(each["id"]))).errors).toContain(
      `of 7.5 USD a month for each end user of account 'Spender' is deleted.`,
    );
  });

  test("are listed in pages, as a table with the place where it goes on", async () => {
    for (const name of ["Page A", "Page B"]) await folder.json("accounts", "create", name);
    const first = await folder.run("accounts", "list", "--limit", "1");
    expect(first.output).toContain("Page B");
    const [, cursor = ""] = /--cursor (\S+)/.exec(first.errors) ?? [];
    const second = await folder.json("accounts", "list", "--limit", "1", "--cursor", cursor);
    expect((second["data"] as JsonRecord[])[0]).toMatchObject({ name: "Page A" });
    const one = await folder.json("accounts", "list", "--name", "Page A");
    expect(idsOf(one)).toEqual(idsOf(second));
  });

  test("go when nothing belongs to them, or with all that does when the name is repeated", async () => {
    await folder.json("accounts", "create", "Empty");
    expect((await folder.run("accounts", "delete", "Empty")).exitCode).toBe(0);
    expect((await folder.run("accounts", "show", "Empty")).errors).toContain("no account 'Empty'");

    await folder.json("accounts", "create", "Doomed");
    const place = ["--account", "Doomed", "--environment", "local"];
    await folder.json("applications", "create", "doomed-app", ...place);
    await folder.json("keys", "create", "--application", "doomed-app", "--plan", "pilot");
    const kept = await folder.run("accounts", "delete", "Doomed");
    expect([kept.exitCode, kept.output]).toEqual([1, ""]);
    const wrong = await folder.run("accounts", "erase", "Doomed", "--confirm", "Other");
    expect(wrong.errors).toContain("nothing was erased");
    expect(wrong.exitCode).toBe(1);
    expect((await folder.run("accounts", "erase", "Doomed")).exitCode).toBe(2);
    const erased = await folder.run("accounts", "erase", "Doomed", "--confirm", "Doomed");
    expect(erased.errors).toContain("is erased");
    expect(erased.exitCode).toBe(0);
    expect(idsOf(await folder.json("applications", "list", "--name", "doomed-app"))).toEqual([]);
  });
});

describe("applications", () => {
  test("are made, found by name, changed, stopped, started and removed", async () => {
    await folder.json("accounts", "create", "App Shop");
    const place = ["--account", "App Shop", "--environment", "local"];
    const made = await folder.json("applications", "create", "search", ...place, "--note", "first");
    expect(made).toMatchObject({ name: "search", environment: "local", note: "first" });
    const table = await folder.run("applications", "list", ...place);
    expect(table.output).toContain("search");
    const changed = await folder.json("applications", "update", "search", "--note", "second");
    expect(changed["note"]).toBe("second");
    expect((await folder.run("applications", "disable", "search")).exitCode).toBe(0);
    expect((await folder.json("applications", "show", "search"))["disabled_at"]).toBeString();
    expect((await folder.run("applications", "enable", "search")).exitCode).toBe(0);
    expect((await folder.run("applications", "delete", "search")).exitCode).toBe(0);
    expect((await folder.run("applications", "show", "search")).exitCode).toBe(1);
  });

  test("of one name in two accounts must be told apart, and the message says how", async () => {
    for (const account of ["Twin A", "Twin B"]) {
      await folder.json("accounts", "create", account);
      const place = ["--account", account, "--environment", "local"];
      await folder.json("applications", "create", "twin", ...place);
    }
    const unclear = await folder.run("applications", "show", "twin");
    expect(unclear.exitCode).toBe(2);
    expect(unclear.errors).toContain("--account");
    expect(unclear.errors.match(/app_\w+/g)).toHaveLength(2);
    const clear = await folder.json("applications", "show", "twin", "--account", "Twin B");
    expect(unclear.errors).toContain(String(clear["id"]));
  });
});

describe("keys", () => {
  const create = (...options: string[]): Promise<JsonRecord> =>
    folder.json("keys", "create", "--application", "shop-app", ...options);

  beforeAll(async () => {
    await folder.json("accounts", "create", "Key Shop");
    const place = ["--account", "Key Shop", "--environment", "local"];
    await folder.json("applications", "create", "shop-app", ...place);
  });

  test("a new one is alone on standard output; the rest is said beside it", async () => {
    const made = await folder.run("keys", "create", "--application", "shop-app", "--plan", "pilot");
    expect(made.output).toMatch(new RegExp(`^${apiKeyPattern.source}\n$`));
    expect(made.errors).toContain("not shown again");
    expect(made.errors).not.toContain(made.output.trim());
  });

  test("has its plan, limits, models, networks and end from the command line", async () => {
    const limits = "--requests-per-minute 50 --tokens-per-minute 9000";
    const models = "--models alpha-sonnet-4,embed-text-v2";
    const rest = "--networks 10.0.0.0/8,192.0.2.7 --expires 2999-01-31 --note big";
    const options = `--plan enterprise ${limits} ${models} ${rest}`.split(" ");
    const { key } = (await create(...options)) as { key: JsonRecord };
    expect(key).toMatchObject({
      plan: "enterprise",
      limits: { requests_per_minute: 50, tokens_per_minute: 9000 },
      provisioned_units: 0,
      allowed_models: ["alpha-sonnet-4", "embed-text-v2"],
      allowed_networks: ["10.0.0.0/8", "192.0.2.7"],
      expires_at: "2999-01-31T00:00:00.000Z",
      note: "big",
    });
    const free = ["--plan", "pro", "--plan-limits", "--models", "all", "--networks", "any"];
    const id = String(key["id"]);
    const changed = await folder.json("keys", "update", id, ...free, "--expires", "never");
    expect(changed).toMatchObject({
      plan: "pro",
      limits: null,
      provisioned_units: 0,
      allowed_models: null,
      allowed_networks: null,
      expires_at: null,
    });
  });

  test("are stopped for a while or for good, by id, by first characters or by the whole key", async () => {
    const { key, api_key: text } = (await create("--plan", "pilot")) as {
      key: JsonRecord;
      api_key: string;
    };
    const statusOf = async (named: string): Promise<unknown> =>
      (await folder.json("keys", "show", named))["status"];
    const disabled = await folder.run("keys", "disable", text.slice(0, 15));
    expect(disabled.errors).toContain(String(key["id"]));
    expect(await statusOf(text)).toBe("disabled");
    await folder.run("keys", "enable", String(key["id"]));
    expect(await statusOf(String(key["id"]))).toBe("active");
    const inactive = ["keys", "list", "--application", "shop-app", "--status", "inactive"];
    expect(idsOf(await folder.json(...inactive))).not.toContain(key["id"]);
    const revoked = await folder.run("keys", "revoke", text);
    expect(revoked.exitCode).toBe(0);
    expect(revoked.errors + revoked.output).not.toContain(text.slice(16));
    expect(await statusOf(text.slice(0, 15))).toBe("revoked");
    expect(idsOf(await folder.json(...inactive))).toContain(String(key["id"]));
  });

  test("are rotated: the new secret alone on standard output, the old one's end beside it", async () => {
    const { key } = (await create("--plan", "pilot")) as { key: JsonRecord };
    const id = String(key["id"]);
    const first = await folder.run("keys", "rotate", id, "--overlap", "7d");
    expect(first.output).toMatch(new RegExp(`^${apiKeyPattern.source}\n$`));
    expect(first.errors).toMatch(
      /works until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC, in (7 d|6 d 23 h)\./,
    );
    expect(first.errors).not.toContain("Warning");
    const table = await folder.run("keys", "list", "--application", "shop-app");
    const line = table.output.split("\n").find((each) => each.includes(id)) ?? "";
    expect(line.match(/sk-slc_\w{8}/g)).toHaveLength(2);
    const second = await folder.json("keys", "rotate", id, "--compromised");
    expect(second["overlap_until"]).toBeNull();
    expect(second["ended"]).toHaveLength(2);
    expect((await folder.run("keys", "rotate", id, "--overlap", "8d")).exitCode).toBe(2);
    const both = ["--overlap", "1h", "--compromised"];
    expect((await folder.run("keys", "rotate", id, ...both)).exitCode).toBe(2);
  });

  test("the old secret of a rotation is ended by its first characters, the last one never", async () => {
    const { key, api_key: old } = (await create("--plan", "pilot")) as {
      key: JsonRecord;
      api_key: string;
    };
    const id = String(key["id"]);
    const { api_key: fresh } = await folder.json("keys", "rotate", id);
    expect((await folder.run("keys", "end-secret", id)).exitCode).toBe(2);
    const ended = await folder.run("keys", "end-secret", old);
    expect(ended.exitCode).toBe(0);
    expect(ended.errors).toStartWith(`${old.slice(0, 15)} has ended. Key ${id} `);
    expect(ended.errors).not.toContain(old.slice(16));
    const last = await folder.run("keys", "end-secret", String(fresh).slice(0, 15));
    expect([last.exitCode, last.output]).toEqual([1, ""]);
    const again = await folder.json("keys", "end-secret", old.slice(0, 15));
    const secrets = again["secrets"] as JsonRecord[];
    expect(secrets.filter(({ status }) => status === "live")).toHaveLength(1);
  });

  test("a new secret that does not work is told to be so", async () => {
    const { key } = (await create("--plan", "pilot")) as { key: JsonRecord };
    const id = String(key["id"]);
    await folder.run("keys", "disable", id);
    const rotated = await folder.run("keys", "rotate", id);
    expect(rotated.output).toMatch(new RegExp(`^${apiKeyPattern.source}\n$`));
    expect(rotated.errors).toContain("Warning: the key does not work: its status is disabled");
    await folder.run("applications", "disable", "shop-app");
    const made = await folder.run("keys", "create", "--application", "shop-app", "--plan", "pilot");
    expect(made.errors).toContain("does not work: its status is application_disabled");
    await folder.run("applications", "enable", "shop-app");
    await folder.run("accounts", "disable", "Key Shop");
    const more = await folder.run("keys", "create", "--application", "shop-app", "--plan", "pilot");
    expect(more.errors).toContain("does not work: its status is account_disabled");
    await folder.run("accounts", "enable", "Key Shop");
  });

  test.each([
    ["--plan enterprise", "each key needs --requests-per-minute and --tokens-per-minute"],
    ["--plan gold", "Invalid value for --plan: "],
    ["--plan pilot --networks 10.0.0.0/8,nowhere", "Invalid value for --networks (no. 2): "],
    ["--plan pilot --models unheard-of", "Invalid value for --models (no. 1): "],
    ["--plan pilot --expires 2020-01-01", "Invalid value for --expires: "],
  ])("what is wrong with %s is told by the option's name", async (options, told) => {
    const create = ["keys", "create", "--application", "shop-app", ...options.split(" ")];
    const { exitCode, errors } = await folder.run(...create);
    expect(errors).toContain(told);
    expect(exitCode).toBe(2);
  });

  test("a command that is repeated under its idempotency key does its work once", async () => {
    const { key } = (await create("--plan", "pilot")) as { key: JsonRecord };
    const again = ["keys", "rotate", String(key["id"]), "--idempotency-key", "deploy-17"];
    const [one, two] = [await folder.json(...again), await folder.json(...again)];
    expect(two).toEqual(one);
  });

  test("a repeat under its idempotency key may end a key after a while", async () => {
    const options = ["--plan", "pilot", "--expires", "30d", "--idempotency-key", "deploy-18"];
    const one = await create(...options);
    const two = await create(...options);
    expect(two).toEqual(one);
    const { created_at: made, expires_at: end } = one["key"] as Record<string, string>;
    expect(Date.parse(end ?? "") - Date.parse(made ?? "")).toBe(30 * 86_400_000);
  });

  test("that leaked are found in any text and ended, and only told about with --keep", async () => {
    const { key, api_key: text } = (await create("--plan", "pilot")) as {
      key: JsonRecord;
      api_key: string;
    };
    const unknown = `sk-slc_aaaaaaaa_${"b".repeat(49)}`;
    const file = await folder.write("paste.txt", `KEY="${text}" or ${unknown}\n${text}`);
    const told = await folder.json("keys", "check-leak", file, "--keep");
    expect(told["data"]).toMatchObject([
      { key_id: key["id"], application: "shop-app", outcome: "live" },
      { key_id: null },
    ]);
    const ended = await folder.run("keys", "check-leak", file);
    expect(ended.output).toContain("secret_ended");
    expect(ended.output).not.toContain(text.slice(16));
    const clean = await folder.write("clean.txt", "nothing here");
    expect((await folder.run("keys", "check-leak", clean)).exitCode).toBe(1);
    expect((await folder.run("keys", "check-leak", `${file}.gone`)).errors).toContain("ENOENT");
  });

  test.each([
    ["without an application", ["keys", "create", "--plan", "pilot"], 2],
    ["without a plan", ["keys", "create", "--application", "shop-app"], 2],
    ["on an unknown plan", ["keys", "create", "--application", "shop-app", "--plan", "gold"], 2],
    [
      "on a custom plan without limits",
      ["keys", "create", "--application", "shop-app", "--plan", "enterprise"],
      2,
    ],
    [
      "with half of the limits",
      [
        "keys",
        "create",
        "--application",
        "shop-app",
        "--plan",
        "enterprise",
        "--tokens-per-minute",
        "5",
      ],
      2,
    ],
    ["of an unknown application", ["keys", "create", "--application", "no", "--plan", "pilot"], 1],
    ["that is unknown", ["keys", "revoke", "key_nobody"], 1],
    ["that changes in nothing", ["keys", "update", "key_nobody"], 2],
    ["that was never issued", ["keys", "revoke", `sk-slc_aaaaaaaa_${"b".repeat(49)}`], 1],
    ["by what is neither id nor key", ["keys", "show", `my secret ${"b".repeat(49)}`], 2],
  ])(
    "a key %s is refused with its exit code, and no secret repeated",
    async (_, line, exitCode) => {
      const { errors, output, ...result } = await folder.run(...line);
      expect([result.exitCode, output]).toEqual([exitCode, ""]);
      expect(errors.length).toBeGreaterThan(20);
      expect(errors).not.toContain("bbbb");
      expect(errors).not.toContain("    at ");
    },
  );
});

describe("users", () => {
  test("are made with a password from a file, changed, stopped, started and removed", async () => {
    await folder.json("accounts", "create", "User Shop");
    const file = await folder.write("password.txt", "a long enough passphrase\n");
    const role = ["--role", "account_holder", "--account", "User Shop"];
    const more = ["--password-file", file, "--name", "Ada"];
    const made = await folder.json("users", "create", "Ada@Example.com", ...role, ...more);
    expect(made).toMatchObject({ email: "ada@example.com", name: "Ada", has_password: true });
    const table = await folder.run("users", "list", "--account", "User Shop");
    expect(table.output).toContain("ada@example.com");
    const to = ["--role", "auditor", "--account", "none", "--name", "Ada L."];
    const changed = await folder.json("users", "update", "ada@example.com", ...to);
    expect(changed).toMatchObject({ role: "auditor", account_id: null, name: "Ada L." });
    expect((await folder.run("users", "disable", "ada@example.com")).exitCode).toBe(0);
    expect((await folder.json("users", "show", "ADA@example.com"))["disabled_at"]).toBeString();
    expect((await folder.run("users", "enable", "ada@example.com")).exitCode).toBe(0);
    const set = ["users", "set-password", "ada@example.com", "--password-file", file];
    const renewed = await folder.run(...set);
    expect(renewed.exitCode).toBe(0);
    expect(renewed.errors).toContain("new password");
    expect(renewed.errors + renewed.output).not.toContain("passphrase");
    expect((await folder.run("users", "delete", "ada@example.com")).exitCode).toBe(0);
    expect(idsOf(await folder.json("users", "list", "--email", "ada@example.com"))).toEqual([]);
  });

  test.each([
    ["an empty password", ["set-password", "a@b.example"], "\n", 1],
    ["a password of two lines", ["set-password", "a@b.example"], "one line\nanother line\n", 1],
    ["a password that is too short", ["create", "a@b.example", "--role", "operator"], "short", 2],
  ])("%s is refused", async (_, line, password, exitCode) => {
    const file = await folder.write("bad-password.txt", password);
    const result = await folder.run("users", ...line, "--password-file", file);
    expect([result.exitCode, result.output]).toEqual([exitCode, ""]);
    expect(result.errors).toContain("password");
  });
});

test("a user without a password is told to have only one way in", async () => {
  const role = ["--role", "auditor"];
  const made = await folder.run("users", "create", "sso@example.com", ...role);
  expect(made.exitCode).toBe(0);
  expect(made.errors).toContain("can only use single sign-on");
  const input = { input: "a long enough passphrase\n" };
  const file = ["--password-file", "-"];
  const both = await folder.runWith(input, "users", "create", "both@example.com", ...role, ...file);
  expect([both.exitCode, both.errors]).toEqual([0, ""]);
});

test("tokens belong to users: on the machine itself one is named", async () => {
  const nobodys = await folder.run("tokens", "create", "script");
  expect([nobodys.exitCode, nobodys.output]).toEqual([2, ""]);
  expect(nobodys.errors).toContain("user");
  expect(idsOf(await folder.json("tokens", "list"))).toEqual([]);
  await folder.json("users", "create", "script@example.com", "--role", "operator");
  const made = await folder.run("tokens", "create", "script", "--user", "script@example.com");
  expect(made.output.trim()).toMatch(/^slc-mgt_/);
  expect(idsOf(await folder.json("tokens", "list"))).toHaveLength(1);
  expect((await folder.run("tokens", "revoke", "tok_nobody")).exitCode).toBe(1);
  expect((await folder.run("tokens", "revoke", "slc-mgt_secret")).errors).not.toContain("secret");
});

test("usage of an empty ledger is empty in every form", async () => {
  expect((await folder.run("usage")).errors).toContain("no calls");
  expect((await folder.json("usage", "totals", "--since", "1h"))["data"]).toEqual([]);
  expect((await folder.json("usage", "series", "--step", "hour"))["data"]).toEqual([]);
  expect((await folder.run("usage", "calls")).errors).toContain("No calls found");
  const csv = await folder.run("usage", "export", "--format", "csv");
  expect(csv.output).toMatch(/^id,started_at,.*\r\n$/);
  expect((await folder.run("usage", "export", "--format", "xml")).exitCode).toBe(2);
  expect((await folder.run("usage", "--by", "weather")).exitCode).toBe(2);
  expect((await folder.run("usage", "--since", "soon")).exitCode).toBe(2);
});

test("the audit tells who changed what, and that the chain is whole", async () => {
  await folder.json("accounts", "create", "Audited");
  const { data } = await folder.json("audit", "list", "--action", "account.create", "--limit", "1");
  expect(data).toMatchObject([{ actor: { name: "local" }, action: "account.create" }]);
  const table = await folder.run("audit", "list", "--since", "1h", "--limit", "3");
  expect(table.output).toContain("account.create");
  expect(table.output).toContain("Audited");
  const verdict = await folder.run("audit", "verify");
  expect(verdict.exitCode).toBe(0);
  expect(verdict.output).toMatch(/intact: \d+ entries, last digest [0-9a-f]{64}/);
});

test.each([
  ["an application", ["keys", "list", "--application", "paymnts"], 1, "no application 'paymnts'"],
  ["an account", ["accounts", "show", "Paying Shp"], 1, "no account 'Paying Shp'"],
  [
    "a plan",
    ["keys", "list", "--plan", "standrad"],
    2,
    "--plan: the configuration has no plan 'standrad'; did you mean 'standard'?",
  ],
  [
    "a plan of a new key",
    ["keys", "create", "--application", "payments", "--plan", "gold"],
    2,
    "use pilot, standard, pro, enterprise",
  ],
  ["an environment", ["applications", "list", "--environment", "loca"], 2, "did you mean 'local'?"],
  ["a model", ["usage", "calls", "--model", "alpha-sonet-4"], 2, "did you mean 'alpha-sonnet-4'?"],
  [
    "a model of a new key",
    ["keys", "create", "--application", "payments", "--plan", "pilot", "--models", "beta-70b"],
    2,
    "(no. 1): environment local has no model 'beta-70b'; did you mean 'beta-3-70b'?",
  ],
])(
  "%s that does not exist is an error, with what was probably meant",
  async (_, line, exitCode, told) => {
    await folder.run("accounts", "create", "Paying Shop");
    await folder.run(
      "applications",
      "create",
      "payments",
      "--account",
      "Paying Shop",
      "--environment",
      "local",
    );
    const result = await folder.run(...line);
    expect([result.exitCode, result.output]).toEqual([exitCode, ""]);
    expect(result.errors).toContain(told);
  },
);

test("environments, models and plans of the configuration are listed", async () => {
  const environments = await folder.run("environments", "list");
  expect(environments.output).toMatch(/^NAME +HOSTS +MODELS\nlocal +\* +alpha-sonnet-4,/);
  const models = await folder.run("models", "--environment", "local");
  expect(models.output).toMatch(/^ALIAS +KIND +ENVIRONMENT +CONTEXT +OUTPUT +TARGETS/);
  expect(models.output).toMatch(/\nembed-text-v2 +embedding +local +\d+ +- +simulator\/\S+/);
  const unknown = await folder.run("models", "list", "--environment", "lokal");
  expect([unknown.exitCode, unknown.output]).toEqual([2, ""]);
  expect(unknown.errors).toContain("did you mean 'local'?");
  const { data } = await folder.json("plans", "list");
  expect((data as JsonRecord[]).map(({ name }) => name)).toEqual([
    "pilot",
    "standard",
    "pro",
    "enterprise",
  ]);
  expect((await folder.run("plans")).output).toMatch(
    /\nenterprise +custom +custom +1 each +enforce +yes/,
  );
});

test("a person is asked before a key is revoked; a script is not", async () => {
  await folder.run("accounts", "create", "Asking Shop");
  const place = ["--account", "Asking Shop", "--environment", "local"];
  await folder.run("applications", "create", "asking", ...place);
  const issue = async (): Promise<string> => {
    const issued = await folder.json(
      "keys",
      "create",
      "--application",
      "asking",
      "--plan",
      "pilot",
    );
    return String((issued["key"] as JsonRecord)["id"]);
  };
  const id = await issue();
  for (const input of ["n\n", "\n", "", "yesterday\n"]) {
    const answered = await folder.runWith({ isTerminal: true, input }, "keys", "revoke", id);
    expect([answered.exitCode, answered.output]).toEqual([1, ""]);
    expect(answered.errors).toContain(
      `Key ${id} of application 'asking': revoke permanently? [y/N]`,
    );
    expect(answered.errors).toContain("Nothing was changed.");
  }
  const yes = await folder.runWith({ isTerminal: true, input: "Yes\n" }, "keys", "revoke", id);
  expect([yes.exitCode, yes.errors.includes("is revoked")]).toEqual([0, true]);
  const other = await folder.runWith(
    { isTerminal: true },
    "keys",
    "revoke",
    await issue(),
    "--yes",
  );
  expect([other.exitCode, other.errors.includes("[y/N]")]).toEqual([0, false]);
  const script = await folder.run("keys", "revoke", await issue());
  expect([script.exitCode, script.errors.includes("[y/N]")]).toEqual([0, false]);
});

test("what only a running gateway remembers is told to be so", async () => {
  expect((await folder.run("refusals")).errors).toContain("running gateway");
  const unknown = await folder.run("explain", `req_${"0".repeat(32)}`);
  expect(unknown.errors).toContain("running gateway");
  expect(unknown.exitCode).toBe(1);
  expect((await folder.run("explain", "yesterday")).exitCode).toBe(2);
});

test("without a gateway and without --offline, the message names every way to one", async () => {
  const result = await runHere(["keys", "list", "--data-dir", folder.path]);
  expect(result.exitCode).toBe(1);
  const ways = ["npx sluice serve", "--url", "--offline", "--data-dir", "--config"];
  for (const way of ways) expect(result.errors).toContain(way);
});

test("a data directory that cannot be used is told, with where to name another", async () => {
  const file = await folder.write("a-file", "");
  const line = ["serve", "--data", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
  const { exitCode, errors } = await runSluice([...line, "--data-dir", `${file}/state`]);
  expect(exitCode).toBe(1);
  expect(errors).toContain(
    `the data directory ${file}/state cannot be used (ENOTDIR: not a directory).`,
  );
  expect(errors).toContain("--data-dir");
});

test("a database of a newer version, or none at all, is told and left alone", async () => {
  using other = createFolder({ isOffline: true });
  await other.write("sluice.db", "this is no database, but a text that is long enough to be seen");
  const result = await other.run("keys", "list");
  expect(result.exitCode).toBe(1);
  expect(result.errors).toContain("sluice.db");
  expect(result.errors).not.toContain("    at ");
});
