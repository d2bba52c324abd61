import type { Model } from "../../../domain/model.ts";
import { suggest } from "../../../domain/suggest.ts";
import type { ServedModels } from "../../kind.ts";
import type { BedrockModelSettings, BedrockSettings } from "../settings.ts";
import { bedrockModelOf } from "./bedrock-model.ts";
import {
  endOfLifeOf,
  foundationModelOf,
  isEmbeddingFamily,
  ModelFamilies,
  oftenNamed,
} from "./facts.ts";

/** A model at one target, and the alias that it serves. */
interface ConfiguredModel {
  readonly model: Pick<Model, "alias" | "kind" | "maxOutputTokens">;
  readonly identifier: string;
  readonly settings: BedrockModelSettings;
  readonly families: ModelFamilies;
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
  const families = new ModelFamilies(settings.families);
  return [...settings.models].flatMap(([alias, byIdentifier]) => {
    const model = served.get(alias);
    if (model === undefined) return [];
    return [...byIdentifier].map(([identifier, own]) => ({
      model,
      identifier: writtenIdentifier(identifier, own),
      settings: own,
      families,
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

function unknownWarning(configured: ConfiguredModel): string | undefined {
  const { model, identifier, settings, families } = configured;
  const isSet = settings.family !== undefined || Object.keys(settings.capabilities).length > 0;
  if (isSet || families.familyOf(identifier) !== undefined) return undefined;
  const meant = meantModel(identifier);
  const hint = meant === undefined ? "" : ` Did you mean '${meant}'?`;
  if (model.kind !== "chat") return hint && `${nameOf(model)}: unknown model ${identifier}.${hint}`;
  return (
    `${nameOf(model)}: unknown model ${identifier}.${hint} If it is right, set bedrock.family or ` +
    "bedrock.capabilities at the target: until then nothing is refused before it is sent, and " +
    "4096 tokens are asked for where a caller sets no cap."
  );
}

function outputWarning(configured: ConfiguredModel): string | undefined {
  const { model, identifier, settings, families } = configured;
  const allowed = model.maxOutputTokens;
  const { family, capabilities, statedOutputTokens } = bedrockModelOf(
    identifier,
    { ...settings, maxOutputTokens: undefined },
    families,
  );
  const known = capabilities.maxOutputTokens;
  if (model.kind !== "chat" || allowed === undefined || known === undefined) return undefined;
  const basis =
    statedOutputTokens !== undefined
      ? "bedrock.capabilities.max_output_tokens"
      : isEmbeddingFamily(family)
        ? "unknown"
        : families.sourceOf(family);
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

function nameOf({ alias }: ConfiguredModel["model"]): string {
  return `models.${alias}`;
}

/** The identifier that an unknown one was probably meant to be, with the same prefix. */
export function meantModel(identifier: string): string | undefined {
  const written = foundationModelOf(identifier);
  if (written === undefined) return undefined;
  const prefix = identifier.slice(0, identifier.length - written.length);
  // The provider's name is often left out.
  const named = new Map(oftenNamed.map((model) => [model.replace(/^[a-z0-9]+\./, ""), model]));
  const meant = named.get(suggest(written, named.keys()) ?? "") ?? suggest(written, oftenNamed);
  return meant === undefined || meant === written ? undefined : prefix + meant;
}
