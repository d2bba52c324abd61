import type { Model } from "../../../domain/model.ts";
import { resolveModel } from "../models/bedrock-model.ts";
import { chatFamilies, familyOf, foundationModelOf } from "../models/model-families.ts";
import type { ServedModels } from "../../kind.ts";
import type { BedrockModelSettings, BedrockSettings } from "../settings.ts";
import { familySources } from "./family-sources.ts";
import { completeModel, meantModel } from "./known-models.ts";

/** A model at one target, and the alias that it serves. */
interface ConfiguredModel {
  readonly model: Pick<Model, "alias" | "kind" | "maxOutputTokens">;
  readonly identifier: string;
  readonly settings: BedrockModelSettings;
}

const dayMs = 24 * 3_600_000;
/** Less than the provider's notice of six months, and enough time to move. */
const noticeDays = 90;
/** An alias that allows less than this share of the model's maximum may be a mistake. */
const smallShare = 1 / 8;

/** Warnings about models that the provider will end, or has ended. `now`: wall clock, ms. */
export function endingModels(
  settings: BedrockSettings,
  served: ServedModels,
  now: number,
): readonly string[] {
  return writtenModels(settings, served).flatMap((model) => lifecycleWarning(model, now) ?? []);
}

/** Warnings about models that are unknown here, or that the operator describes wrongly. */
export function doubtfulModels(settings: BedrockSettings, served: ServedModels): readonly string[] {
  return writtenModels(settings, served)
    .flatMap((written) => [unknownWarning(written), outputWarning(written)])
    .flatMap((text) => (text === undefined || text === "" ? [] : text));
}

function writtenModels(settings: BedrockSettings, served: ServedModels): ConfiguredModel[] {
  return [...settings.models].flatMap(([alias, byIdentifier]) => {
    const model = served.get(alias);
    if (model === undefined) return [];
    return [...byIdentifier].map(([identifier, own]) => ({
      model,
      identifier: writtenIdentifier(identifier, own),
      settings: own,
    }));
  });
}

/** As the operator wrote the model, behind any prefix of a profile or region. */
function writtenIdentifier(identifier: string, { baseModel }: BedrockModelSettings): string {
  if (baseModel === undefined) return identifier;
  const own = foundationModelOf(identifier);
  return own === undefined || own === foundationModelOf(baseModel) ? baseModel : identifier;
}

function lifecycleWarning({ model, identifier }: ConfiguredModel, now: number): string | undefined {
  const end = endOfLifeOf(identifier);
  if (end === undefined) return undefined;
  const days = Math.floor((Date.parse(end.endsOn) - now) / dayMs);
  if (days > noticeDays) return undefined;
  const state =
    days < 0
      ? `reached its end of life on ${end.endsOn}: requests fail`
      : `reaches its end of life on ${end.endsOn}: requests fail from then on`;
  return (
    `${nameOf(model)}: ${identifier} ${state}. Name a newer model at the target. ` +
    `(${end.source}, read ${end.asOf})`
  );
}

function unknownWarning({ model, identifier, settings }: ConfiguredModel): string | undefined {
  const isSet = settings.family !== undefined || Object.keys(settings.capabilities).length > 0;
  if (isSet) return undefined;
  const isKnown = familyOf(identifier) !== undefined;
  const meant = isKnown ? completeModel(identifier) : meantModel(identifier);
  const hint = meant === undefined ? "" : ` Did you mean '${meant}'?`;
  if (isKnown) {
    return hint && `${nameOf(model)}: ${identifier} seems to lack its version.${hint}`;
  }
  if (model.kind !== "chat") return hint && `${nameOf(model)}: unknown model ${identifier}.${hint}`;
  return (
    `${nameOf(model)}: unknown model ${identifier}.${hint} If it is right, set bedrock.family or ` +
    "bedrock.capabilities at the target: until then nothing is refused before it is sent, and " +
    "4096 tokens are asked for where a caller sets no cap."
  );
}

function outputWarning({ model, identifier, settings }: ConfiguredModel): string | undefined {
  const allowed = model.maxOutputTokens;
  const { family, capabilities, statedOutputTokens } = resolveModel(identifier, {
    ...settings,
    maxOutputTokens: undefined,
  });
  const known = capabilities.maxOutputTokens;
  if (model.kind !== "chat" || allowed === undefined || known === undefined) return undefined;
  const basis =
    statedOutputTokens === undefined ? sourceOf(family) : "bedrock.capabilities.max_output_tokens";
  const name = `${nameOf(model)}.max_output_tokens`;
  if (allowed > known) {
    return (
      `${name} is ${allowed}, but ${identifier} writes at most ${known} (${basis}): callers who ` +
      "ask for more get 400. Lower it, or set bedrock.capabilities.max_output_tokens at the " +
      "target if the model writes more."
    );
  }
  const isChosen = settings.maxOutputTokens !== undefined;
  if (isChosen ? allowed >= known * smallShare : allowed === known) return undefined;
  const what = isChosen ? `is ${allowed}` : `is not set, so it is ${allowed}`;
  return `${name} ${what}, though ${identifier} writes up to ${known} (${basis}).`;
}

function sourceOf(family: string): string {
  const known = chatFamilies.find((name) => name === family);
  if (known === undefined) return "unknown";
  const { source, asOf } = familySources[known];
  return `${source}, read ${asOf}`;
}

function nameOf({ alias }: ConfiguredModel["model"]): string {
  return `models.${alias}`;
}

/** When the provider ends a model, by its own pages. */
interface EndOfLife {
  /** The foundation model's identifier. */
  readonly model: string;
  /** `YYYY-MM-DD`, UTC; the last one where regions differ. From then on requests fail. */
  readonly endsOn: string;
  readonly source: string;
  /** When the source was read, `YYYY-MM-DD`. */
  readonly asOf: string;
}

/** The end of the model that an identifier or an ARN names; most have none yet. */
export function endOfLifeOf(identifier: string): EndOfLife | undefined {
  const named = namedByArn.exec(identifier)?.[1] ?? identifier;
  const model = foundationModelOf(named);
  if (model === undefined) return undefined;
  // The size of its context window may follow: `...-v1:0:200k`.
  return endsOfLife.find((end) => model === end.model || model.startsWith(`${end.model}:`));
}

const namedByArn = /^arn:[^:]*:bedrock:[^:]*:[^:]*:(?:foundation-model|inference-profile)\/(.+)$/;

const lifecyclePage =
  "https://docs.aws.amazon.com/bedrock/latest/userguide/model-lifecycle-legacy.html";
const haikuCard =
  "https://docs.aws.amazon.com/bedrock/latest/userguide/model-card-anthropic-claude-3-5-haiku.html";

/** Models that have ended or will end. Ends that are only "no sooner than" are not here. */
export const endsOfLife: readonly EndOfLife[] = [
  // The page as of autumn 2026. It drops models a few months after their end.
  ...ends("2026-10-08", lifecyclePage, {
    "ai21.jamba-1-5-large-v1:0": "2026-11-26",
    "ai21.jamba-1-5-mini-v1:0": "2026-11-26",
    "anthropic.claude-sonnet-4-5-20250929-v1:0": "2027-04-08",
    "anthropic.claude-opus-4-1-20250805-v1:0": "2027-01-08",
    "anthropic.claude-sonnet-4-20250514-v1:0": "2026-10-14",
    "anthropic.claude-3-haiku-20240307-v1:0": "2026-09-10",
    "cohere.command-r-v1:0": "2026-08-19",
    "cohere.command-r-plus-v1:0": "2026-08-19",
  }),
  // The same page, then at `model-lifecycle.html`, as of spring 2026.
  ...ends("2026-05-26", lifecyclePage, {
    "amazon.nova-premier-v1:0": "2026-09-14",
    "anthropic.claude-3-sonnet-20240229-v1:0": "2026-07-30",
    "anthropic.claude-3-5-sonnet-20240620-v1:0": "2026-07-30",
    "anthropic.claude-3-5-sonnet-20241022-v2:0": "2026-07-30",
    // Outside GovCloud it was 2026-04-28.
    "anthropic.claude-3-7-sonnet-20250219-v1:0": "2026-07-30",
    "anthropic.claude-opus-4-20250514-v1:0": "2026-05-31",
    "meta.llama3-1-405b-instruct-v1:0": "2026-07-07",
    "meta.llama3-2-1b-instruct-v1:0": "2026-07-07",
    "meta.llama3-2-3b-instruct-v1:0": "2026-07-07",
    "meta.llama3-2-11b-instruct-v1:0": "2026-07-07",
    "meta.llama3-2-90b-instruct-v1:0": "2026-07-07",
  }),
  ...ends("2026-11-23", haikuCard, { "anthropic.claude-3-5-haiku-20241022-v1:0": "2026-06-19" }),
];

function ends(
  asOf: string,
  source: string,
  dates: Readonly<Record<string, string>>,
): readonly EndOfLife[] {
  return Object.entries(dates).map(([model, endsOn]) => ({ model, endsOn, source, asOf }));
}
