import { describe, expect, test } from "bun:test";
import { upstreamOfKind } from "../../../../test/support/kind-settings.ts";
import { formatProblems, parseConfig } from "../../../config/load.ts";

interface Sections {
  readonly upstream?: string;
  /** Of the alias, as YAML. */
  readonly targets?: string;
  readonly embedding?: string;
  readonly pools?: string;
}

const sonnet = "anthropic.claude-sonnet-4-20250514-v1:0";
const regions = "regions: [us-east-1, us-west-2]";

function fileText({ upstream = regions, targets, embedding, pools = "{}" }: Sections): string {
  return `
environments:
  - { name: production, hosts: [a.example], models: ["*"] }
  - { name: staging, hosts: ["*"], models: [chat-a] }
upstreams:
  aws: { kind: bedrock, ${upstream} }
  near: { kind: bedrock, region: eu-west-1 }
pools: ${pools}
models:
  chat-a:
    kind: chat
    context_window: 1000
    targets: [${targets ?? `{ upstream: aws, model: "us.${sonnet}" }`}]
  embed-a:
    kind: embedding
    context_window: 8192
    targets: [{ upstream: aws, model: "${embedding ?? "amazon.titan-embed-text-v2:0"}" }]
`;
}

function read(sections: Sections = {}) {
  const result = parseConfig(fileText(sections), { name: "sluice.yaml", env: {} });
  if (!result.ok) throw new Error(formatProblems("sluice.yaml", result.problems));
  const { config } = result;
  const model = (environment: string, alias = "chat-a") =>
    config.environments.find(({ name }) => name === environment)?.models.get(alias);
  const upstream = (name: string) => upstreamOfKind(config, "bedrock", name);
  const idsOf = (environment: string, alias?: string) =>
    model(environment, alias)?.targets.map(({ id }) => id);
  return { config, model, upstream, idsOf };
}

function refuse(sections: Sections): string {
  const result = parseConfig(fileText(sections), { name: "sluice.yaml", env: {} });
  return result.ok ? "no problems" : formatProblems("sluice.yaml", result.problems);
}

describe("an upstream in several regions", () => {
  test("is an upstream for each, with the shared settings and its own address", () => {
    const { config, upstream } = read({
      upstream:
        "regions: [us-east-1, eu-west-1], api_key: k, max_in_flight: 7, " +
        "endpoints: { eu-west-1: 'https://vpce.example/' }",
    });
    expect([...config.upstreams.keys()]).toEqual(["aws@us-east-1", "aws@eu-west-1", "near"]);
    const credentials = { source: "bearer" };
    expect(upstream("aws@us-east-1")).toMatchObject({
      name: "aws@us-east-1",
      maxInFlight: 7,
      settings: { credentials, region: "us-east-1", endpoint: undefined },
    });
    expect(upstream("aws@eu-west-1")).toMatchObject({
      maxInFlight: 7,
      settings: { credentials, region: "eu-west-1", endpoint: "https://vpce.example" },
    });
  });

  test("makes a target in every region, in their order, before the next priority", () => {
    const { model } = read({
      upstream: "regions: [us-east-1, eu-central-1, ap-northeast-1], api_key: k",
      targets: `{ upstream: aws, model: "us.${sonnet}", priority: 3, weight: 2 },
                { upstream: near, model: "eu.${sonnet}", priority: 4 }`,
    });
    const expected = [
      ["aws@us-east-1", `us.${sonnet}`, 3, 2],
      ["aws@eu-central-1", `eu.${sonnet}`, 3.01, 2],
      ["aws@ap-northeast-1", `apac.${sonnet}`, 3.02, 2],
      ["near", `eu.${sonnet}`, 4, 1],
    ] as const;
    expect(model("production")?.targets).toHaveLength(expected.length);
    expect(model("production")?.targets).toMatchObject(
      expected.map(([upstream, id, priority, weight]) => ({
        id: `${upstream}/${id}`,
        upstream,
        model: id,
        priority,
        weight,
        outputQuotaWeight: 5,
      })),
    );
  });

  test("has the operator's settings of the model in every region", () => {
    const { upstream } = read({
      upstream: "regions: [us-east-1, eu-central-1]",
      targets: `{ upstream: aws, model: us.new.model, bedrock: { family: nova } }`,
    });
    const settings = (name: string) => [...(upstream(name).settings.models.get("chat-a") ?? [])];
    expect(settings("aws@us-east-1")).toMatchObject([["us.new.model", { family: "nova" }]]);
    expect(settings("aws@eu-central-1")).toMatchObject([["eu.new.model", { family: "nova" }]]);
  });

  test("leaves foundation models, global profiles and embedding models as they are", () => {
    const { idsOf } = read({
      upstream: "regions: [us-east-1, sa-east-1]",
      targets: `{ upstream: aws, model: "global.${sonnet}" }, { upstream: aws, model: meta.x }`,
    });
    expect(idsOf("production")).toEqual([
      `aws@us-east-1/global.${sonnet}`,
      `aws@sa-east-1/global.${sonnet}`,
      "aws@us-east-1/meta.x",
      "aws@sa-east-1/meta.x",
    ]);
    expect(idsOf("production", "embed-a")).toEqual([
      "aws@us-east-1/amazon.titan-embed-text-v2:0",
      "aws@sa-east-1/amazon.titan-embed-text-v2:0",
    ]);
  });

  const provisioned = "arn:aws:bedrock:us-west-2:111122223333:provisioned-model/abc";

  test("serves an ARN only in its region, in that region's turn", () => {
    const { model } = read({
      targets: `{ upstream: aws, model: "${provisioned}", bedrock: { family: claude-4 } },
                { upstream: aws, model: "us.${sonnet}", priority: 2 }`,
    });
    expect(model("production")?.targets.map(({ id, priority }) => [id, priority])).toEqual([
      [`aws@us-west-2/${provisioned}`, 1.01],
      [`aws@us-east-1/us.${sonnet}`, 2],
      [`aws@us-west-2/us.${sonnet}`, 2.01],
    ]);
  });

  test("takes another identifier for a region, whose family is that of the target's model", () => {
    const { idsOf, upstream } = read({
      targets: `{ upstream: aws, model: "us.${sonnet}",
                  bedrock: { identifiers: { us-west-2: "${provisioned}" } } }`,
    });
    expect(idsOf("production")).toEqual([
      `aws@us-east-1/us.${sonnet}`,
      `aws@us-west-2/${provisioned}`,
    ]);
    expect(upstream("aws@us-west-2").settings.models.get("chat-a")?.get(provisioned)).toMatchObject(
      {
        baseModel: `us.${sonnet}`,
      },
    );
  });

  test("in a list of one region fits identifiers as well; one with `region` never does", () => {
    const targets = `{ upstream: aws, model: "us.${sonnet}" }`;
    const ids = (upstream: string) => read({ upstream, targets }).idsOf("production");
    expect(ids("regions: [eu-west-1]")).toEqual([`aws@eu-west-1/eu.${sonnet}`]);
    expect(ids("region: eu-west-1")).toEqual([`aws/us.${sonnet}`]);
  });

  test("shares a pool among its regions", () => {
    const { model } = read({
      pools: "{ shared: { tokens_per_minute: 1000 } }",
      targets: `{ upstream: aws, model: "us.${sonnet}", pool: shared }`,
    });
    expect(model("production")?.targets.map(({ pool }) => pool)).toEqual(["shared", "shared"]);
  });

  test.each([
    ["api_key: k", "region: is required, unless regions is set"],
    [`region: us-east-1, ${regions}`, "regions: must not be set together with region"],
    ["regions: []", "regions: must"],
    ["regions: [us-east-1, us-east-1]", "regions: must not name a region twice"],
    ["regions: [us-east]", "regions[0]: must be a region such as us-east-1"],
    [
      `${regions}, endpoint: 'https://h'`,
      "endpoint: must not be set together with regions: endpoints has one for each",
    ],
    [
      "region: us-east-1, endpoints: { us-east-1: 'https://h' }",
      "endpoints: needs regions beside it; one region has endpoint",
    ],
    [
      `${regions}, endpoints: { eu-west-1: 'https://h' }`,
      "endpoints: names eu-west-1, which is not in regions",
    ],
    [
      `${regions}, fips: true, endpoints: { us-east-1: 'https://h' }`,
      "fips: must not be set together with endpoints",
    ],
  ])("is refused with %s", (upstream, message) => {
    expect(refuse({ upstream })).toContain(`upstreams.aws.${message}`);
  });
});

describe("an identifier", () => {
  const arn = (region: string) =>
    `arn:aws:bedrock:${region}:111122223333:provisioned-model/abcdefghijkl`;
  const target = (model: string, more = "") =>
    `{ upstream: aws, model: "${model}", bedrock: { family: claude-4${more} } }`;

  test.each([
    [
      "region: us-east-1",
      target(arn("us-west-2")),
      "is an ARN of us-west-2, but the upstream is in us-east-1",
    ],
    [
      regions,
      target(arn("eu-west-1")),
      "is an ARN of eu-west-1, but the upstream is in us-east-1, us-west-2",
    ],
    [
      "regions: [us-east-1, sa-east-1]",
      target(`us.${sonnet}`),
      "no profile of this kind is known in sa-east-1: set the identifier for it under bedrock.identifiers",
    ],
  ])("that is not valid at the upstream is refused (%s)", (upstream, targets, message) => {
    expect(refuse({ upstream, targets })).toContain(`models.chat-a.targets[0].model: ${message}`);
  });

  test.each([
    ["region: us-east-1", "us-east-1: x", "is for upstreams with regions only"],
    [regions, "eu-west-1: x", "the upstream is not in eu-west-1, but in us-east-1, us-west-2"],
    [regions, `us-west-2: "${arn("us-east-1")}"`, "is an ARN of us-east-1, which is not valid in"],
  ])("of a region is refused where it means nothing (%s, %s)", (upstream, pair, message) => {
    const targets = target(`us.${sonnet}`, `, identifiers: { ${pair} }`);
    expect(refuse({ upstream, targets })).toContain(message);
  });

  test("for a region without a profile is enough", () => {
    const targets = target(`us.${sonnet}`, `, identifiers: { sa-east-1: "${sonnet}" }`);
    const { idsOf } = read({ upstream: "regions: [us-east-1, sa-east-1]", targets });
    expect(idsOf("production")).toEqual([`aws@us-east-1/us.${sonnet}`, `aws@sa-east-1/${sonnet}`]);
  });

  test("that becomes another target's in a region repeats it", () => {
    const targets = `{ upstream: aws, model: "us.${sonnet}" }, { upstream: aws, model: "eu.${sonnet}" }`;
    expect(refuse({ upstream: "regions: [us-east-1, ap-south-1]", targets })).toContain(
      "models.chat-a.targets[1]: repeats targets[0]: same upstream and model",
    );
  });
});

describe("application inference profiles", () => {
  const arn = (id: string, region = "us-east-1") =>
    `arn:aws:bedrock:${region}:111122223333:application-inference-profile/${id}`;
  const target = (profiles: string, model = `us.${sonnet}`) =>
    `{ upstream: aws, model: "${model}", bedrock: { profiles: { ${profiles} } } }`;

  test("are the identifiers of their environment; the others keep the model's", () => {
    const { idsOf, upstream } = read({
      upstream: "region: us-east-1",
      targets: target(`production: "${arn("p1")}"`),
    });
    expect(idsOf("production")).toEqual([`aws/${arn("p1")}`]);
    expect(idsOf("staging")).toEqual([`aws/us.${sonnet}`]);
    const models = upstream("aws").settings.models.get("chat-a");
    expect(models?.get(arn("p1"))).toMatchObject({ baseModel: `us.${sonnet}`, family: undefined });
    expect(models?.get(`us.${sonnet}`)?.baseModel).toBeUndefined();
  });

  test("are one for each region of the upstream", () => {
    const { idsOf } = read({
      targets: target(
        `production: ["${arn("p2", "us-west-2")}", "${arn("p1")}"], ` +
          `staging: ["${arn("s1")}", "${arn("s2", "us-west-2")}"]`,
      ),
    });
    expect(idsOf("production")).toEqual([
      `aws@us-east-1/${arn("p1")}`,
      `aws@us-west-2/${arn("p2", "us-west-2")}`,
    ]);
    expect(idsOf("staging")).toEqual([
      `aws@us-east-1/${arn("s1")}`,
      `aws@us-west-2/${arn("s2", "us-west-2")}`,
    ]);
  });

  test("need an ARN for every region in which the target serves", () => {
    const owned = (region: string) =>
      `arn:aws:bedrock:${region}:111122223333:provisioned-model/abcdefghijkl`;
    const target = (profiles: string) =>
      `{ upstream: aws, model: "${owned("us-east-1")}", bedrock: { family: claude-4,
         identifiers: { us-west-2: "${owned("us-west-2")}" },
         profiles: { production: [${profiles}] } } }`;
    const [first, second] = [arn("p1"), arn("p2", "us-west-2")];
    expect(read({ targets: target(`"${first}", "${second}"`) }).idsOf("production")).toEqual([
      `aws@us-east-1/${first}`,
      `aws@us-west-2/${second}`,
    ]);
    expect(refuse({ targets: target(`"${first}"`) })).toContain("has no ARN of us-west-2");
  });

  test.each([
    [regions, `production: "${arn("p1")}"`, "has no ARN of us-west-2, where the target serves too"],
    [
      "region: us-east-1",
      `production: "${arn("p1", "us-west-2")}"`,
      "has an ARN of us-west-2, but the target serves in us-east-1",
    ],
    [
      "region: us-east-1",
      `production: ["${arn("p1")}", "${arn("p2")}"]`,
      "has two ARNs of us-east-1",
    ],
    [
      "region: us-east-1",
      `productoin: "${arn("p1")}"`,
      "no environment has this name; did you mean 'production'?",
    ],
    [
      "region: us-east-1",
      "production: us.x",
      "must be the ARN of an application inference profile",
    ],
  ])("are refused with %s and %s", (upstream, profiles, message) => {
    const text = refuse({ upstream, targets: target(profiles) });
    expect(text).toContain("models.chat-a.targets[0].bedrock.profiles.");
    expect(text).toContain(message);
  });

  test("are not sold twice: all targets that name them share a pool", () => {
    const second = `{ upstream: aws, model: "${arn("p1")}", bedrock: { family: claude-4 } }`;
    const upstream = "region: us-east-1";
    const targets = `${target(`production: "${arn("p1")}"`)}, ${second}`;
    expect(refuse({ upstream, targets })).toContain("targets[1]: repeats targets[0]");
  });
});
