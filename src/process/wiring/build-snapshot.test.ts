import { expect, test } from "bun:test";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import { buildSnapshot } from "./build-snapshot.ts";
import { formatProblems, parseConfig } from "../../config/load.ts";

function configWith(upstream: string) {
  const text = `
environments: [{ name: test, hosts: ["*"], models: ["*"] }]
upstreams:
  aws: { kind: bedrock, region: us-east-1, ${upstream} }
models:
  chat-model: { kind: chat, context_window: 1000, targets: [{ upstream: aws, model: a }] }
`;
  const result = parseConfig(text, { name: "test", env: {} });
  if (!result.ok) throw new Error(formatProblems("test", result.problems));
  return result.config;
}

const parts = {
  clock: new ManualClock(),
  randomBytes: (target: Uint8Array) => target,
  onTrouble: () => undefined,
  hooks: [],
};

const credential = (secret: string): string => `access_key_id: AKID, secret_access_key: ${secret}`;

test("an upstream with unchanged settings keeps its adapter and thus its credentials", () => {
  const config = configWith(credential("one"));
  const before = { config, snapshot: buildSnapshot(config, parts) };
  const after = (secret: string) => buildSnapshot(configWith(credential(secret)), parts, before);
  const earlier = before.snapshot.upstreams.get("aws");
  expect(after("one").upstreams.get("aws")?.adapter).toBe(earlier?.adapter);
  expect(after("two").upstreams.get("aws")?.adapter).not.toBe(earlier?.adapter);
});
