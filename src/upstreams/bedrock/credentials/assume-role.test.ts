import { afterAll, beforeAll, expect, test } from "bun:test";
import { CredentialHome, loadedAs } from "../../../../test/support/credential-sources.ts";
import { TokenService, type TrustedRole } from "../../../../test/support/token-service.ts";

let home: CredentialHome;
beforeAll(() => {
  home = new CredentialHome();
});
afterAll(() => home[Symbol.dispose]());

const roleArn = "arn:aws:iam::111122223333:role/sluice";
const keys = { AWS_ACCESS_KEY_ID: "AKIA1", AWS_SECRET_ACCESS_KEY: "s" };

interface Case {
  readonly trusted?: Omit<TrustedRole, "roleArn">;
  /** The upstream's settings of the role, beyond the defaults. */
  readonly role?: object;
  readonly env?: Readonly<Record<string, string>>;
}

async function assume({ trusted = {}, role = {}, env = keys }: Case) {
  await using service = new TokenService({
    roles: [{ roleArn, ...trusted }],
    callers: ["AKIA1"],
  });
  const loaded = await home.loadTwice({
    env: { ...env, AWS_ENDPOINT_URL_STS: service.url },
    role: { roleArn, sessionName: "sluice", sessionTags: {}, ...role },
  });
  return { loaded, sessions: service.sessions };
}

test("a role is assumed at every load, in the upstream's region, with the chain's credentials", async () => {
  const { loaded, sessions } = await assume({});
  expect(loaded).toEqual([loadedAs(1), loadedAs(2)]);
  expect(sessions.map(({ signer, region }) => [signer, region])).toEqual([
    ["AKIA1", "eu-west-1"],
    ["AKIA1", "eu-west-1"],
  ]);
  expect(Object.fromEntries(sessions[0]?.form ?? [])).toEqual({
    Action: "AssumeRole",
    Version: "2011-06-15",
    RoleArn: roleArn,
    RoleSessionName: "sluice",
  });
});

test("external id, session name, tags and duration are sent", async () => {
  const { loaded, sessions } = await assume({
    trusted: { externalId: "customer/42", takesTags: true, longestSeconds: 7200 },
    role: {
      externalId: "customer/42",
      sessionName: "gateway@eu",
      sessionTags: { team: "search", "cost center": "k+1" },
      duration: 7_200_000,
    },
  });
  expect(loaded).toEqual([loadedAs(1), loadedAs(2)]);
  expect(Object.fromEntries(sessions[0]?.form ?? [])).toMatchObject({
    RoleSessionName: "gateway@eu",
    ExternalId: "customer/42",
    "Tags.member.1.Key": "team",
    "Tags.member.1.Value": "search",
    "Tags.member.2.Key": "cost center",
    "Tags.member.2.Value": "k+1",
    DurationSeconds: "7200",
  });
});

test.each([
  [
    "another external id",
    { trusted: { externalId: "a1" }, role: { externalId: "b2" } },
    "sts:AssumeRole",
  ],
  ["no external id", { trusted: { externalId: "a1" } }, "sts:AssumeRole"],
  ["tags without the right to them", { role: { sessionTags: { team: "x" } } }, "sts:TagSession"],
  ["another role", { role: { roleArn: `${roleArn}-2` } }, "sts:AssumeRole"],
  ["too long a duration", { role: { duration: 7_200_000 } }, "exceeds the MaxSessionDuration"],
  [
    "too long a duration for a role that assumes a role",
    {
      trusted: { longestSeconds: 7200 },
      role: { duration: 7_200_000 },
      env: { ...keys, AWS_SESSION_TOKEN: "t" },
    },
    "1 hour session limit",
  ],
] satisfies [string, Case, string][])(
  "a refusal for %s is reported with the provider's message and what to change",
  async (_, each, words) => {
    const { loaded } = await assume(each);
    const failure = loaded[0]?.failure;
    expect(failure?.kind).toBe("bad-credential");
    expect(failure?.message).toStartWith("the role was not assumed (");
    expect(failure?.message).toContain(words);
    expect(failure?.message).toContain("must trust what assumes it, with the external_id");
  },
);

test("without credentials to assume the role with, the chain's own message is reported", async () => {
  const { loaded, sessions } = await assume({ env: {} });
  expect(loaded[0]?.failure?.message).toStartWith("no credentials for the provider (");
  expect(sessions).toEqual([]);
});
