import { afterEach, beforeEach, expect, test } from "bun:test";
import { chmodSync } from "node:fs";
import {
  CredentialHome,
  expiration,
  loadedAs,
  serveCredentials,
} from "../../../../test/support/credential-sources.ts";
import { TokenService } from "../../../../test/support/token-service.ts";

let home: CredentialHome;
beforeEach(() => {
  home = new CredentialHome();
});
afterEach(() => home[Symbol.dispose]());

/** Writes the file that the provider's command line keeps after a sign-in. */
async function signIn(name: string, token: object): Promise<void> {
  const digest = new Bun.CryptoHasher("sha1").update(name).digest("hex");
  await home.write(`.aws/sso/cache/${digest}.json`, JSON.stringify(token));
}

const ssoProfile = `[profile team]
sso_session = corp
sso_account_id = 111122223333
sso_role_name = Sluice
[sso-session corp]
sso_region = eu-central-1
sso_start_url = https://corp.example/start
`;
const signedIn = { accessToken: "pass", expiresAt: expiration, region: "eu-central-1" };

/** The portal of single sign-on, with new credentials for each request. */
function servePortal() {
  let count = 0;
  return serveCredentials((request) => {
    const { pathname, searchParams } = new URL(request.url);
    const isOurs =
      pathname === "/federation/credentials" &&
      searchParams.get("role_name") === "Sluice" &&
      searchParams.get("account_id") === "111122223333";
    if (!isOurs) return new Response(null, { status: 404 });
    if (request.headers.get("x-amz-sso_bearer_token") !== "pass") {
      return Response.json({ message: "Session token not found or invalid" }, { status: 401 });
    }
    count += 1;
    return Response.json({
      roleCredentials: {
        accessKeyId: `ASIA${count}`,
        secretAccessKey: `secret ${count}`,
        sessionToken: `token ${count}`,
        expiration: Date.parse(expiration),
      },
    });
  });
}

test("a profile with single sign-on is asked at every load, with the token of the sign-in", async () => {
  using portal = servePortal();
  await home.write(".aws/config", ssoProfile);
  await signIn("corp", signedIn);
  const env = { AWS_ENDPOINT_URL_SSO: `http://127.0.0.1:${portal.port}` };
  expect(await home.loadTwice({ env, profile: "team" })).toEqual([loadedAs(1), loadedAs(2)]);
});

test("a profile with single sign-on of the old form is asked too", async () => {
  using portal = servePortal();
  const url = "https://corp.example/start";
  await home.write(
    ".aws/config",
    `[profile old]\nsso_start_url = ${url}\nsso_region = eu-central-1\n` +
      "sso_account_id = 111122223333\nsso_role_name = Sluice\n",
  );
  await signIn(url, { ...signedIn, startUrl: url });
  const env = { AWS_ENDPOINT_URL_SSO: `http://127.0.0.1:${portal.port}` };
  expect(await home.loadTwice({ env, profile: "old" })).toEqual([loadedAs(1), loadedAs(2)]);
});

test("single sign-on is asked in its own region, not in the upstream's", async () => {
  await home.write(".aws/config", ssoProfile);
  await signIn("corp", signedIn);
  const before = `
    import https from "node:https";
    https.request = ({ host }) => { throw new Error("asked " + host); };`;
  const [first] = await home.loadTwice({ profile: "team", before });
  expect(first?.failure?.message).toContain("asked portal.sso.eu-central-1.amazonaws.com");
});

test("a sign-in that has ended is reported", async () => {
  await home.write(".aws/config", ssoProfile);
  await signIn("corp", { ...signedIn, expiresAt: "2020-01-01T00:00:00Z" });
  const [first] = await home.loadTwice({ profile: "team" });
  expect(first?.failure?.kind).toBe("bad-credential");
  expect(first?.failure?.message).toContain("aws sso login");
});

/** A program that prints new credentials at each run. */
async function writeProcess(name: string, printed: string): Promise<string> {
  const path = await home.write(name, `#!/bin/sh\necho run >> "$HOME/runs"\n${printed}\n`);
  chmodSync(path, 0o755);
  return path;
}

const printing = `
count=$(wc -l < "$HOME/runs" | tr -d ' ')
echo "{\\"Version\\": 1, \\"AccessKeyId\\": \\"ASIA$count\\", \\"SecretAccessKey\\": \\"secret $count\\",
  \\"SessionToken\\": \\"token $count\\", \\"Expiration\\": \\"${expiration}\\"}"`;

test("a profile's process is run at every load", async () => {
  const path = await writeProcess("print-credentials", printing);
  await home.write(".aws/config", `[profile vault]\ncredential_process = ${path} --json\n`);
  expect(await home.loadTwice({ profile: "vault" })).toEqual([loadedAs(1), loadedAs(2)]);
});

test.each([
  ["fails", "exit 3"],
  ["prints what is no JSON", "echo hello"],
  ["prints another version", 'echo "{\\"Version\\": 2}"'],
  [
    "prints expired ones",
    `echo '{"Version":1,"AccessKeyId":"A","SecretAccessKey":"s","Expiration":"2020-01-01T00:00:00Z"}'`,
  ],
])("a process that %s is told", async (_, printed) => {
  const path = await writeProcess("broken", printed);
  await home.write(".aws/config", `[profile vault]\ncredential_process = ${path}\n`);
  const [first] = await home.loadTwice({ profile: "vault" });
  expect(first?.failure?.kind).toBe("bad-credential");
  expect(first?.failure?.message).toContain("the profile vault must be in the shared");
});

test("a profile's role is assumed with another's process, and an upstream's role with that one", async () => {
  const far = "arn:aws:iam::444455556666:role/far";
  const near = "arn:aws:iam::111122223333:role/near";
  await using service = new TokenService({
    roles: [{ roleArn: near, externalId: "e1" }, { roleArn: far }],
  });
  const path = await writeProcess("print-credentials", printing);
  await home.write(
    ".aws/config",
    `[profile vault]\ncredential_process = ${path}\n` +
      `[profile role]\nsource_profile = vault\nrole_arn = ${near}\nexternal_id = e1\n`,
  );
  const env = { AWS_ENDPOINT_URL_STS: service.url };
  const role = { roleArn: far, sessionName: "sluice", sessionTags: {} };
  await home.loadTwice({ env, profile: "role", role });
  const asked = service.sessions.map(({ form, region }) => [form.get("RoleArn"), region]);
  expect(asked.slice(0, 2)).toEqual([
    [near, "eu-west-1"],
    [far, "eu-west-1"],
  ]);
});
