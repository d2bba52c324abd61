import { metricsOf } from "../support/metrics-of.ts";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { demoCredentials, type Simulator, startSimulator } from "../../simulator/simulator.ts";
import { chatOf, errorOf } from "../support/bodies.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

/** An upstream in three regions, each a simulator that knows its own geography's profiles only. */

const sonnet = "anthropic.claude-sonnet-4-20250514-v1:0";
const haiku = "anthropic.claude-haiku-4-5-20251001-v1:0";
const profile = (id: string, region: string) =>
  `arn:aws:bedrock:${region}:111122223333:application-inference-profile/${id}`;
const throttled = { requestsPerMinute: 0 };

const regions = ["us-east-1", "eu-central-1", "ap-northeast-1"] as const;
type Region = (typeof regions)[number];

let simulators: Record<Region, Simulator>;
let gateway: TestGateway;
beforeEach(async () => {
  const start = (region: Region, full: readonly string[] = []) =>
    startSimulator({
      bedrock: {
        region,
        quotas: { models: Object.fromEntries(full.map((model) => [model, throttled])) },
      },
    });
  simulators = {
    "us-east-1": start("us-east-1", [`us.${haiku}`, "simulated-full"]),
    "eu-central-1": start("eu-central-1", [`eu.${haiku}`, "simulated-full"]),
    "ap-northeast-1": start("ap-northeast-1", ["simulated-full"]),
  };
  const { accessKeyId, secretAccessKey } = demoCredentials;
  const endpoints = regions.map((region) => `${region}: "${simulators[region].origin}"`);
  const chat = (alias: string, target: string) => `
  ${alias}:
    kind: chat
    context_window: 200000
    max_output_tokens: 4000
    targets: [{ upstream: aws, ${target} }]`;
  const profiles = (environment: string, id: string) =>
    `${environment}: [${regions.map((region) => `"${profile(id, region)}"`).join(", ")}]`;
  gateway = await startGateway({
    sections: {
      routing:
        "{ target_header: true, attempts: 3, retry_floor: 1000, first_backoff: 1ms, longest_backoff: 1ms, " +
        "out: { failures: 2, least_attempts: 1000 } }",
      environments: `
  - { name: test, hosts: ["*"], models: ["*"] }
  - { name: staging, hosts: [staging.example], models: [costed] }`,
      upstreams: `
  aws:
    kind: bedrock
    regions: [${regions.join(", ")}]
    endpoints: { ${endpoints.join(", ")} }
    access_key_id: "${accessKeyId}"
    secret_access_key: "${secretAccessKey}"`,
      models: [
        chat("sonnet", `model: "us.${sonnet}"`),
        chat("haiku", `model: "us.${haiku}"`),
        chat("full", "model: simulated-full"),
        chat(
          "costed",
          `model: "us.${sonnet}", bedrock: { profiles: { ${profiles("staging", "s1")} } }`,
        ),
      ].join(""),
    },
  });
});
afterEach(async () => {
  await gateway[Symbol.asyncDispose]();
  await Promise.all(Object.values(simulators).map((each) => each[Symbol.asyncDispose]()));
});

const say = (model: string) => ({ model, messages: [{ role: "user", content: "echo: one" }] });

async function call(model: string, headers: Readonly<Record<string, string>> = {}) {
  const response = await gateway.post("/v1/chat/completions", say(model), { headers });
  if (response.status === 200) {
    expect((await chatOf(response)).choices[0]?.message.content).toBe("one");
  }
  return response;
}

async function targets(): Promise<(string | undefined)[]> {
  return (await gateway.usage()).map(({ target }) => target).toReversed();
}

/** Times that a target went out, for all keys and for single ones. */
async function timesOut(target: string): Promise<number> {
  const text = await metricsOf(gateway.adminUrl);
  const start = `sluice_target_outs_total{target="${target}",`;
  const counts = text.split("\n").filter((line) => line.startsWith(start));
  return counts.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
}

test("the first region serves while it can", async () => {
  const response = await call("sonnet");
  expect(response.status).toBe(200);
  expect(response.headers.get("x-sluice-target")).toBe("aws@us-east-1; model=sonnet");
  expect(await targets()).toEqual([`aws@us-east-1/us.${sonnet}`]);
});

test("regions without room pass calls on in order, each with the profile that it knows", async () => {
  const response = await call("haiku");
  expect(response.status).toBe(200);
  expect(response.headers.get("x-sluice-target")).toBe("aws@ap-northeast-1; model=haiku");
  const [row] = await gateway.usage();
  expect(row).toMatchObject({ attempts: 3, target: `aws@ap-northeast-1/jp.${haiku}` });
});

test("a region that fails is out alone, and the next one takes its calls", async () => {
  simulators["us-east-1"].setFaultPlan([{ mode: "error-500", times: 2, share: 1 }]);
  for (let index = 0; index < 4; index += 1) expect((await call("sonnet")).status).toBe(200);
  const second = `aws@eu-central-1/eu.${sonnet}`;
  expect(await targets()).toEqual([second, second, second, second]);
  expect(await timesOut(`aws@us-east-1/us.${sonnet}`)).toBe(1);
  expect(await timesOut(second)).toBe(0);
  expect(await timesOut(`aws@us-east-1/us.${haiku}`)).toBe(0);
});

test("a region that cannot be reached is passed over", async () => {
  await simulators["us-east-1"][Symbol.asyncDispose]();
  const response = await call("sonnet");
  expect(response.status).toBe(200);
  expect(response.headers.get("x-sluice-target")).toBe("aws@eu-central-1; model=sonnet");
});

test("with no region left callers get one 503", async () => {
  const response = await call("full");
  expect(response.status).toBe(503);
  expect(await errorOf(response)).toMatchObject({ code: "model_unavailable" });
});

test("an environment's calls use its own profile, also in the next region", async () => {
  const staging = await gateway.createKey({ environment: "staging" });
  const headers = { host: "staging.example", authorization: `Bearer ${staging.text}` };
  expect((await call("costed")).status).toBe(200);
  expect((await call("costed", headers)).status).toBe(200);
  simulators["us-east-1"].setFaultPlan([{ mode: "error-500", times: 1, share: 1 }]);
  expect((await call("costed", headers)).status).toBe(200);
  expect(await targets()).toEqual([
    `aws@us-east-1/us.${sonnet}`,
    `aws@us-east-1/${profile("s1", "us-east-1")}`,
    `aws@eu-central-1/${profile("s1", "eu-central-1")}`,
  ]);
});
