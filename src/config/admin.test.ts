import { describe, expect, test } from "bun:test";
import type { Config } from "./config.ts";
import { formatProblems, parseConfig } from "./load.ts";
import { configWarnings } from "./problems/warnings.ts";

const plainUpstream = "{ kind: openai, base_url: http://127.0.0.1:8000/v1 }";

function parse(sections: string, upstream = plainUpstream) {
  const text = `
environments: [{ name: production, hosts: ["*"], models: ["*"] }]
upstreams: { vllm: ${upstream} }
models: { a: { kind: chat, context_window: 1000, targets: [{ upstream: vllm, model: a }] } }
${sections}`;
  return parseConfig(text, { name: "sluice.yaml", env: { SECRET: "the-secret-of-the-client" } });
}

function read(sections: string, upstream?: string): Config {
  const result = parse(sections, upstream);
  if (!result.ok) throw new Error(formatProblems("sluice.yaml", result.problems));
  return result.config;
}

function refuse(sections: string): string {
  const result = parse(sections);
  return result.ok ? "no problems" : formatProblems("sluice.yaml", result.problems);
}

describe("the settings of the control plane", () => {
  test("have defaults that need no file", () => {
    expect(read("").admin).toEqual({
      publicUrl: undefined,
      hosts: [],
      bootstrapToken: undefined,
      sessionIdleMs: 30 * 60_000,
      sessionAbsoluteMs: 12 * 3_600_000,
      requestsPerMinute: 600,
      signInsPerMinute: 5,
      sso: undefined,
    });
  });

  test("take single sign-on with a secret that nothing prints", () => {
    const { sso } = read(`admin:
  public_url: https://console.example.com/
  sso:
    issuer: https://login.example.com
    client_id: sluice
    client_secret: \${SECRET}
    role_claim: roles
    roles: { sluice-admins: operator, customers: account_holder }`).admin;
    expect(sso?.clientSecret?.reveal()).toBe("the-secret-of-the-client");
    expect(sso?.roles).toEqual({ "sluice-admins": "operator", customers: "account_holder" });
    expect(sso?.scopes).toEqual(["openid", "profile", "email"]);
    expect(JSON.stringify(sso) + Bun.inspect(sso)).not.toContain("the-secret");
  });

  for (const [what, sections, problem] of [
    ["a role that does not exist", "roles: { a: root }", "operator"],
    ["scopes without openid", "scopes: [email]", "must include openid"],
    ["a setting that does not exist", "audience: x", "audience"],
  ] as const) {
    test(`refuse ${what}`, () => {
      const sso = `{ issuer: https://login.example.com, client_id: sluice, ${sections} }`;
      expect(refuse(`admin: { sso: ${sso} }`)).toContain(problem);
    });
  }

  test("take hosts as names, addresses, networks and `*`", () => {
    const { hosts } = read(
      "admin: { hosts: [Prom.internal, 10.0.0.0/8, '::1', '[::2]', '*'] }",
    ).admin;
    expect(hosts).toEqual(["prom.internal", "10.0.0.0/8", "::1", "[::2]", "*"]);
    for (const host of ["prom.internal:8081", "http://prom.internal", "*.internal", "", "a/8"]) {
      expect(refuse(`admin: { hosts: ["${host}"] }`)).toContain("must be a host without port");
    }
  });

  test("refuse an idle time longer than the lifetime of sessions", () => {
    expect(refuse("admin: { session_idle: 2h, session_absolute: 1h }")).toContain(
      "must not be shorter than admin.session_idle",
    );
  });

  test("refuse a bootstrap token that could be guessed", () => {
    expect(refuse("admin: { bootstrap_token: secret }")).toContain("16");
  });
});

describe("an admin address that other machines reach", () => {
  const warningsOf = (sections: string): readonly string[] => configWarnings(read(sections), 0);
  const open = "listen: { admin: 0.0.0.0:8081 }";

  test("causes a warning unless TLS is in front or only this machine is meant", () => {
    for (const sections of [open, `${open}\nadmin: { public_url: "http://admin.example.com" }`]) {
      const [warning, ...others] = warningsOf(sections);
      expect(warning).toContain("listen.admin: 0.0.0.0");
      expect(warning).toContain("admin.public_url");
      expect(others).toEqual([]);
    }
    for (const url of ["https://admin.example.com", "http://localhost:8081"]) {
      expect(warningsOf(`${open}\nadmin: { public_url: "${url}" }`)).toEqual([]);
    }
    for (const host of ["127.0.0.1", "localhost", "[::1]"]) {
      expect(warningsOf(`listen: { admin: "${host}:8081" }`)).toEqual([]);
    }
    expect(warningsOf("")).toEqual([]);
  });
});

test("a mode of TLS that verifies more here than elsewhere is named in a warning", () => {
  const warningsOf = (query: string): readonly string[] =>
    configWarnings(read(`storage: { url: "postgres://user@db.example/sluice?${query}" }`), 0);
  for (const mode of ["prefer", "require", "verify-ca"]) {
    const [warning, ...others] = warningsOf(`application_name=a&sslmode=${mode}`);
    expect(warning).toContain(`sslmode=${mode} is used as verify-full`);
    expect(others).toEqual([]);
  }
  for (const query of ["sslmode=verify-full", "sslmode=require&uselibpqcompat=true", "a=b"]) {
    expect(warningsOf(query)).toEqual([]);
  }
});

describe("the settings of the ledger", () => {
  test("force the spool to the disk by default and bound it", () => {
    const { sync, spoolLimitBytes, segmentBytes } = read("").ledger;
    expect([sync, spoolLimitBytes, segmentBytes]).toEqual(["group", 1024 ** 3, 8 * 1024 ** 2]);
  });

  test("refuse a spool that is smaller than a few of its files", () => {
    expect(refuse("ledger: { spool_limit: 1MiB, segment_size: 512KiB }")).toContain(
      "must be at least four times ledger.segment_size",
    );
  });

  test("let an upstream drain answers whose caller has left", () => {
    const upstream = "{ kind: openai, base_url: http://127.0.0.1:8000/v1, drain: { limit: 8 } }";
    expect(read("", upstream).upstreams.get("vllm")?.drain).toEqual({
      timeoutMs: 5000,
      limit: 8,
    });
  });
});

describe("trusted proxies", () => {
  test("are CIDR blocks", () => {
    const { trustedProxies } = read("http: { trusted_proxies: [10.0.0.0/8, '::1'] }").http;
    expect(trustedProxies).toEqual(["10.0.0.0/8", "::1"]);
  });

  test("are refused when they are names", () => {
    expect(refuse("http: { trusted_proxies: [proxy.internal] }")).toContain("CIDR");
  });
});
