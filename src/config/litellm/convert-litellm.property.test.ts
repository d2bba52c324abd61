import { expect, test } from "bun:test";
import fc from "fast-check";
import { runsOf } from "../../../test/support/requirement.ts";
import { objectOf } from "../../domain/json-fields.ts";
import { Secret } from "../../domain/keys/secret.ts";
import type { Model } from "../../domain/model.ts";
import type { Config } from "../config.ts";
import { formatProblems, parseConfig } from "../load.ts";
import { writeYaml } from "../text/yaml-syntax.ts";
import { convertLiteLlm } from "./convert-litellm.ts";

/**
 * Routing by LiteLLM's documents, written apart from the conversion: deployments of one name share its
 * calls; `order` comes before shares; shares are `weight`, else `rpm`, else `tpm`; fallbacks are tried in
 * turn, each with its own first. Whatever a file loses has to be in the notes.
 */
interface Params {
  readonly model: string;
  readonly order?: number;
  readonly weight?: number | undefined;
  readonly rpm?: number | undefined;
  readonly tpm?: number | undefined;
  readonly api_key?: string;
  readonly timeout?: number;
  readonly input_cost_per_token?: number;
  readonly output_cost_per_token?: number;
}

interface Deployment {
  readonly model_name: string;
  readonly litellm_params: Params;
}

interface LiteLlmFile {
  readonly [section: string]: unknown;
  readonly model_list: readonly Deployment[];
  readonly router_settings: {
    readonly num_retries: number | undefined;
    readonly fallbacks: readonly Readonly<Record<string, readonly string[]>>[];
    readonly model_group_alias: Readonly<Record<string, string>>;
  };
}

/** Where a model is, and what Sluice's file then has to say. Nothing: it cannot be served. */
const places: Readonly<Record<string, string | undefined>> = {
  "groq/llama-x": "https://api.groq.com/openai/v1|llama-x",
  "openai/gpt-4o": "https://api.openai.com/v1|gpt-4o",
  "gpt-4.1": "https://api.openai.com/v1|gpt-4.1",
  "openrouter/a/b": "https://openrouter.ai/api/v1|a/b",
  "anthropic/claude-sonnet-4-6": "https://api.anthropic.com|claude-sonnet-4-6",
  "bedrock/eu-west-1/anthropic.claude-sonnet-4-6": "eu-west-1|anthropic.claude-sonnet-4-6",
  "vertex_ai/gemini-2.5-pro": undefined,
  "openai/*": undefined,
};

const names = ["chat", "small", "big model", "größe", "eu/gpt:free"];
const share = fc.option(fc.constantFrom(0, 0.1, 0.9, 1, 3, 250_000, 1_000_000_000), {
  nil: undefined,
});

const deployments = fc.array(
  fc.record({
    model_name: fc.constantFrom(...names),
    litellm_params: fc.record(
      {
        model: fc.constantFrom(...Object.keys(places)),
        order: fc.constantFrom(-1, 0, 1, 7),
        weight: share,
        rpm: share,
        tpm: share,
        api_key: fc.constantFrom("os.environ/ONE", "os.environ/TWO"),
        timeout: fc.constantFrom(0.5, 30, 700),
        input_cost_per_token: fc.constantFrom(0, 3e-6),
        output_cost_per_token: fc.constantFrom(0, 1.5e-5),
      },
      { requiredKeys: ["model", "api_key"] },
    ),
  }),
  { minLength: 1, maxLength: 7 },
);

const others = fc.constantFrom(...names, "nick", "nobody");
const files: fc.Arbitrary<LiteLlmFile> = fc.record({
  model_list: deployments,
  router_settings: fc.record({
    num_retries: fc.option(fc.integer({ min: 0, max: 4 }), { nil: undefined }),
    fallbacks: fc
      .uniqueArray(
        fc.tuple(
          fc.constantFrom(...names, "*"),
          fc.uniqueArray(others, { minLength: 1, maxLength: 3 }),
        ),
        { maxLength: 4, selector: ([name]) => name },
      )
      .map((entries) => entries.map(([name, following]) => ({ [name]: following }))),
    model_group_alias: fc.constantFrom({}, { nick: "chat" }, { nick: "small", chat: "small" }),
  }),
});

/** What may happen to a call: levels of targets with their shares, one after the other. */
type Levels = readonly Readonly<Record<string, number>>[];

function identityOf({ litellm_params: params }: Deployment): string | undefined {
  const { model, api_key, timeout = 600 } = params;
  const place = places[model];
  const key = api_key?.replace("os.environ/", "");
  return place === undefined ? undefined : `${place}|${key}|${timeout * 1000}`;
}

function routedByLiteLlm(served: readonly Deployment[]): Levels {
  const levels: Record<string, number>[] = [];
  const done = new Set<string>();
  let rest = [...served];
  while (rest.length > 0) {
    const orders = rest.flatMap(({ litellm_params: { order } }) => order ?? []);
    const first = orders.length === 0 ? undefined : Math.min(...orders);
    const eligible = rest.filter(({ litellm_params: { order } }) => order === first);
    const metric = (["weight", "rpm", "tpm"] as const).find((name) =>
      eligible.some(({ litellm_params: params }) => (params[name] ?? 0) > 0),
    );
    const sharing = eligible.filter(
      (each) => metric === undefined || (each.litellm_params[metric] ?? 0) > 0,
    );
    const level: Record<string, number> = {};
    for (const each of sharing) {
      const id = identityOf(each) ?? "";
      const amount = metric === undefined ? 1 : (each.litellm_params[metric] ?? 0);
      if (!done.has(id)) level[id] = (level[id] ?? 0) + amount;
    }
    for (const id of Object.keys(level)) done.add(id);
    if (Object.keys(level).length > 0) levels.push(inParts(level));
    rest = rest.filter((each) => !sharing.includes(each));
  }
  return levels;
}

function routedBySluice(model: Model, { upstreams }: Config): Levels {
  const priorities = [...new Set(model.targets.map(({ priority }) => priority))].toSorted(
    (one, other) => one - other,
  );
  return priorities.map((priority) => {
    const among = model.targets.filter((target) => target.priority === priority);
    const weights = among.map(({ upstream: name, model: id, weight }) => {
      const upstream = upstreams.get(name);
      const settings = objectOf(upstream?.settings) ?? {};
      const { baseUrl, region, apiKey = objectOf(settings["credentials"])?.["apiKey"] } = settings;
      const key = apiKey instanceof Secret ? apiKey.reveal() : "";
      const place = `${String(baseUrl ?? region)}|${id}|${key}|${upstream?.timeouts.totalMs}`;
      return [place, weight] as const;
    });
    return inParts(Object.fromEntries(weights));
  });
}

/** Parts of 1, in thousandths: a share below that may be rounded. */
function inParts(amounts: Readonly<Record<string, number>>): Record<string, number> {
  const sum = Object.values(amounts).reduce((total, amount) => total + amount, 0);
  const parts = Object.entries(amounts).map(
    ([id, amount]) => [id, Math.round((amount / sum) * 1000)] as const,
  );
  return Object.fromEntries(parts.toSorted(([one], [other]) => (one < other ? -1 : 1)));
}

function chainByLiteLlm(file: LiteLlmFile, name: string, isServed: (name: string) => boolean) {
  const { fallbacks, model_group_alias: aliases } = file.router_settings;
  const of = (at: string) => fallbacks.find((entry) => Object.hasOwn(entry, at))?.[at];
  const tried: string[] = [];
  const lost: string[] = [];
  const attempted = new Set([name]);
  const walk = (at: string): void => {
    for (const written of of(at) ?? of("*") ?? []) {
      const alias = aliases[written];
      const isNick = !isServed(written) && alias !== undefined && isServed(alias);
      const other = isNick ? alias : written;
      if (attempted.has(other)) continue;
      attempted.add(other);
      (isServed(other) ? tried : lost).push(other);
      walk(other);
    }
  };
  walk(name);
  return { tried, lost };
}

const environment = { ONE: "ONE", TWO: "TWO" };

test("a converted file routes calls as LiteLLM does, and its notes name whatever is lost", () => {
  fc.assert(
    fc.property(files, (file) => {
      const { file: converted, notes, hasModels } = convertLiteLlm(file);
      const told = notes.join("\n");
      const served = file.model_list.filter((each) => identityOf(each) !== undefined);
      for (const [index, each] of file.model_list.entries()) {
        const isLost = identityOf(each) === undefined;
        expect(told.includes(`model_list[${index}] (${each.model_name})`)).toBe(isLost);
      }
      expect(hasModels).toBe(served.length > 0);
      if (!hasModels) return;
      const text = writeYaml(converted, []);
      const result = parseConfig(text, { name: "sluice.yaml", env: environment });
      if (!result.ok) throw new Error(formatProblems("sluice.yaml", result.problems) + text);
      const { environments, upstreams, routing } = result.config;
      const [production] = environments;
      const isServed = (name: string) => served.some(({ model_name }) => model_name === name);
      const resolve = (name: string): Model | undefined => {
        const alias = production?.otherNames?.exact.get(name) ?? name;
        return production?.models.get(alias) ?? production?.models.get(name.replaceAll(" ", "-"));
      };
      for (const name of new Set(served.map(({ model_name }) => model_name))) {
        const model = resolve(name);
        if (model === undefined) throw new Error(`${name} is gone`);
        const own = served.filter(({ model_name }) => model_name === name);
        expect(routedBySluice(model, result.config)).toEqual(routedByLiteLlm(own));
        const { tried, lost } = chainByLiteLlm(file, name, isServed);
        expect(model.fallbacks).toEqual(tried.map((each) => resolve(each)?.alias ?? ""));
        for (const each of lost) expect(told).toContain(`${name} -> ${each}`);
        const hasRate = own.some(({ litellm_params: { rpm, tpm } }) => (rpm ?? tpm) !== undefined);
        expect(new RegExp(`rpm and tpm of a deployment.*\\b${model.alias}[,.]`).test(told)).toBe(
          hasRate,
        );
        for (const { litellm_params: params } of own) {
          const times = [...upstreams.values()].map(({ timeouts: { totalMs } }) => totalMs);
          if (params.timeout !== undefined) expect(times).toContain(params.timeout * 1000);
          const [input, output] = [params.input_cost_per_token, params.output_cost_per_token];
          const isPriced = input !== undefined && output !== undefined;
          if (!isPriced && (input ?? output) !== undefined) {
            expect(told).toMatch(new RegExp(`_cost_per_token is not .*\\b${model.alias}[,.]`));
          }
          if (!isPriced || told.includes("says a price or options counts")) continue;
          const written = { input: Math.round(input * 1e12), output: Math.round(output * 1e12) };
          expect(model.targets.map(({ price }) => price)).toContainEqual(written);
        }
      }
      for (const [nick, meant] of Object.entries(file.router_settings.model_group_alias)) {
        if (isServed(meant) && !isServed(nick)) expect(resolve(nick)).toBe(resolve(meant));
        else expect(told).toContain(`The alias ${nick} is left out`);
      }
      const { num_retries: retries } = file.router_settings;
      if (retries !== undefined) expect(routing.attempts).toBe(retries + 1);
    }),
    { numRuns: runsOf(300) },
  );
}, 180_000);

const keys = [
  "model",
  "api_base",
  "api_key",
  "order",
  "rpm",
  "timeout",
  "fallbacks",
  "model_group_alias",
  "mode",
];
const anyMap = fc.dictionary(
  fc.constantFrom(...keys, "extra_headers", "max_tokens"),
  fc.jsonValue(),
);
const section = fc.oneof(fc.jsonValue(), anyMap);
const anyDeployment = fc.record(
  {
    model_name: fc.oneof(fc.jsonValue(), fc.string({ unit: "grapheme", minLength: 1 })),
    litellm_params: fc.oneof(
      section,
      fc
        .tuple(
          anyMap,
          fc.constantFrom(...Object.keys(places), "azure/x", "azure_ai/y", "bedrock/a/b", "a//b"),
        )
        .map(([rest, model]) => ({ ...rest, model })),
    ),
    model_info: section,
  },
  { requiredKeys: [] },
);

test("whatever a file has, its conversion answers", () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.jsonValue(), anyDeployment), { maxLength: 4 }),
      section,
      section,
      (list, settings, router) => {
        const tree = { model_list: list, litellm_settings: settings, router_settings: router };
        const { file, notes } = convertLiteLlm(tree);
        expect(writeYaml(file, notes)).toContain("environments:");
      },
    ),
    { numRuns: runsOf(1000) },
  );
}, 180_000);
