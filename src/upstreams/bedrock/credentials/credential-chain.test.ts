import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  CredentialHome,
  expiration,
  loadedAs,
  serveCredentials,
} from "../../../../test/support/credential-sources.ts";

const authorizeFile = new URL("authorize.ts", import.meta.url).pathname;
const clockFile = new URL("../../../domain/clock.ts", import.meta.url).pathname;

let home: CredentialHome;
beforeAll(() => {
  home = new CredentialHome();
});
afterAll(() => home[Symbol.dispose]());

function temporary(count: number): Response {
  return Response.json({
    Code: "Success",
    AccessKeyId: `ASIA${count}`,
    SecretAccessKey: `secret ${count}`,
    Token: `token ${count}`,
    Expiration: expiration,
  });
}

test("keys of the environment are found and do not expire", async () => {
  const keys = { AWS_ACCESS_KEY_ID: "AKIA1", AWS_SECRET_ACCESS_KEY: "s" };
  const loaded = { accessKeyId: "AKIA1", secretAccessKey: "s" };
  expect(await home.loadTwice({ env: keys })).toEqual([loaded, loaded]);
});

test("a container's role is requested with its token at every load", async () => {
  let requests = 0;
  using server = serveCredentials((request, path) => {
    const isOurs = request.headers.get("authorization") === "pass" && path === "/role";
    requests += 1;
    return isOurs ? temporary(requests) : new Response(null, { status: 403 });
  });
  const env = {
    AWS_CONTAINER_CREDENTIALS_FULL_URI: `http://127.0.0.1:${server.port}/role`,
    AWS_CONTAINER_AUTHORIZATION_TOKEN: "pass",
  };
  expect(await home.loadTwice({ env })).toEqual([loadedAs(1), loadedAs(2)]);
  expect(requests).toBe(2);
});

test("an instance's role is requested with a session of its metadata service", async () => {
  let roles = 0;
  using server = serveCredentials((request, path) => {
    if (path === "/latest/api/token" && request.method === "PUT") return new Response("session");
    if (request.headers.get("x-aws-ec2-metadata-token") !== "session") {
      return new Response(null, { status: 401 });
    }
    if (!path.endsWith("/role-1")) return new Response("role-1");
    roles += 1;
    return temporary(roles);
  });
  const env = {
    AWS_EC2_METADATA_DISABLED: "false",
    AWS_EC2_METADATA_SERVICE_ENDPOINT: `http://127.0.0.1:${server.port}`,
  };
  expect(await home.loadTwice({ env })).toEqual([loadedAs(1), loadedAs(2)]);
});

test("a web identity assumes its role, with its token read each time", async () => {
  const tokens: (string | null)[] = [];
  using server = serveCredentials(async (request) => {
    const form = new URLSearchParams(await request.text());
    expect(form.get("Action")).toBe("AssumeRoleWithWebIdentity");
    expect(form.get("RoleArn")).toBe("arn:aws:iam::123456789012:role/sluice");
    tokens.push(form.get("WebIdentityToken"));
    const count = tokens.length;
    return new Response(
      `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
        <AssumeRoleWithWebIdentityResult><Credentials>
          <AccessKeyId>ASIA${count}</AccessKeyId>
          <SecretAccessKey>secret ${count}</SecretAccessKey>
          <SessionToken>token ${count}</SessionToken>
          <Expiration>${expiration}</Expiration>
        </Credentials></AssumeRoleWithWebIdentityResult>
      </AssumeRoleWithWebIdentityResponse>`,
      { headers: { "content-type": "text/xml" } },
    );
  });
  const file = join(home.folder, "identity");
  writeFileSync(file, "identity 1");
  const env = {
    AWS_WEB_IDENTITY_TOKEN_FILE: file,
    AWS_ROLE_ARN: "arn:aws:iam::123456789012:role/sluice",
    AWS_ENDPOINT_URL_STS: `http://127.0.0.1:${server.port}`,
  };
  const between = `await Bun.write(${JSON.stringify(file)}, "identity 2");`;
  expect(await home.loadTwice({ env, between })).toEqual([loadedAs(1), loadedAs(2)]);
  expect(tokens).toEqual(["identity 1", "identity 2"]);
});

test("the keys of the named profile are found, and again after a rotation", async () => {
  const file = join(home.folder, "credentials");
  const keys = (id: string) => `aws_access_key_id = ${id}\naws_secret_access_key = s\n`;
  writeFileSync(file, `[default]\n${keys("AKIA0")}[team]\n${keys("AKIA1")}`);
  const rotated = `[team]\n${keys("AKIA2")}`;
  const env = { AWS_SHARED_CREDENTIALS_FILE: file, AWS_ACCESS_KEY_ID: "AKIA9" };
  const between = `await Bun.write(${JSON.stringify(file)}, ${JSON.stringify(rotated)});`;
  expect(await home.loadTwice({ env, profile: "team", between })).toEqual([
    { accessKeyId: "AKIA1", secretAccessKey: "s" },
    { accessKeyId: "AKIA2", secretAccessKey: "s" },
  ]);
});

test("a chain without credentials names the settings of the operator", async () => {
  const [first, second] = await home.loadTwice({ env: {} });
  expect(first?.failure?.kind).toBe("bad-credential");
  expect(first?.failure?.message).toContain("no credentials for the provider (");
  expect(first?.failure?.message).toEndWith(
    "set api_key, or access_key_id and secret_access_key, at the upstream, or give the process " +
      "a profile, a web identity, or the role of a container or instance",
  );
  expect(second).toEqual(first);
});

test("a missing profile is reported", async () => {
  const [first] = await home.loadTwice({ env: {}, profile: "teem" });
  expect(first?.failure?.kind).toBe("bad-credential");
  expect(first?.failure?.message).toEndWith(
    "the profile teem must be in the shared configuration files of the process's user",
  );
});

const authorizing = (credentials: string) => `
  import { createAuthorizer } from ${JSON.stringify(authorizeFile)};
  import { Secret } from ${JSON.stringify(new URL("../../../domain/keys/secret.ts", import.meta.url).pathname)};
  import { systemClock as clock } from ${JSON.stringify(clockFile)};
  const settings = { region: "us-east-1", credentials: ${credentials} };
  const authorizer = createAuthorizer(settings, { clock });
  const request = { url: "https://h.example/model/a/converse", method: "POST", headers: {}, body: "{}" };
  const ending = new AbortController();
  const calls = Array.from({ length: 100 }, () => authorizer.authorize(request, ending));
  for (const { headers } of await Promise.all(calls)) {
    console.log(/^Bearer k|Credential=(\\w+)/.exec(headers.authorization)[0]);
  }
  console.log(Object.keys(require.cache).some((path) => path.includes("credential-providers")));`;

test("a hundred concurrent calls ask the container once", async () => {
  let requests = 0;
  using server = serveCredentials(() => {
    requests += 1;
    return temporary(requests);
  });
  const uri = `http://127.0.0.1:${server.port}/role`;
  const lines = await home.run(authorizing(`{ source: "chain", profile: undefined }`), {
    AWS_CONTAINER_CREDENTIALS_FULL_URI: uri,
  });
  expect(lines).toEqual([...Array.from({ length: 100 }, () => "Credential=ASIA1"), "true"]);
  expect(requests).toBe(1);
});

test.each([
  [`{ source: "bearer", apiKey: new Secret("k") }`, "Bearer k"],
  [`{ source: "static", accessKeyId: "A", secretAccessKey: new Secret("s") }`, "Credential=A"],
])("the chain's package is not loaded for %s", async (credentials, line) => {
  const lines = await home.run(authorizing(credentials), {});
  expect(lines).toEqual([...Array.from({ length: 100 }, () => line), "false"]);
});
