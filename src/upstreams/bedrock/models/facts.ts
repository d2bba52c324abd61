import {
  type Capabilities,
  capabilitiesSchema,
  usualCapabilities,
} from "../config/capabilities.ts";
import facts from "./facts.json" with { type: "json" };

/** What is known of the provider's models and regions, with its sources, is in `facts.json`. */

export type ChatFamily = keyof typeof facts.families;
export type EmbeddingFamily = keyof typeof facts.embedding_families;
export type ModelFamily = ChatFamily | EmbeddingFamily;

/** Models with the same capabilities. Identifiers contain the family; an ARN does not. */
interface FamilyFacts {
  /** A pattern of foundation models. The last family that fits counts. */
  readonly models?: string;
  /** The family that has the same capabilities apart from these. */
  readonly like?: string;
  /** With the keys of the configuration. Each comes from a refusal by a model. */
  readonly capabilities: Readonly<Record<string, unknown>>;
  readonly source: string;
  /** When the source was read, `YYYY-MM-DD`. */
  readonly as_of: string;
  /**
   * `documented`: on the provider's page. `measured`: others report what the service itself
   * accepted and refused. `reported`: by pages or projects that do not name their source.
   */
  readonly basis: string;
  /** What the source has beyond the row, or where sources disagree. */
  readonly note?: string;
}

export const familyFacts: Readonly<Record<ChatFamily, FamilyFacts>> = facts.families;

export const chatFamilies = keysOf(facts.families);
export const embeddingFamilies = keysOf(facts.embedding_families);

export const familyCapabilities: ReadonlyMap<string, Capabilities> = new Map(
  chatFamilies.map((family) => [family, capabilitiesOf(familyFacts[family])]),
);

function capabilitiesOf({ like, capabilities }: FamilyFacts): Capabilities {
  const base = chatFamilies.find((family) => family === like);
  return {
    ...(base === undefined ? usualCapabilities : capabilitiesOf(familyFacts[base])),
    ...capabilitiesSchema.parse(capabilities),
  };
}

export function isEmbeddingFamily(family: ModelFamily): family is EmbeddingFamily {
  return family in facts.embedding_families;
}

/**
 * The family that a foundation model's or system profile's identifier names. Undefined for ARNs,
 * which do not contain it, and for unknown models.
 */
export function familyOf(identifier: string): ModelFamily | undefined {
  const foundation = foundationModelOf(identifier);
  if (foundation === undefined) return undefined;
  return patterns.findLast(([pattern]) => pattern.test(foundation))?.[1];
}

/** The foundation model behind a system profile, or the identifier itself; an ARN hides it. */
export function foundationModelOf(identifier: string): string | undefined {
  return identifier.startsWith("arn:") ? undefined : identifier.replace(geography, "");
}

/** The prefix of system profiles' identifiers before the foundation model's. */
const geography = /^(?:us-gov|us|eu|apac|jp|au|ca|in|global)\./;

const patterns: readonly (readonly [RegExp, ModelFamily])[] = [
  ...embeddingFamilies.map((family) => [facts.embedding_families[family], family] as const),
  ...chatFamilies.map((family) => [familyFacts[family].models, family] as const),
].flatMap(([models, family]) => (models === undefined ? [] : [[new RegExp(models), family]]));

/** Foundation models that are named often, to recognise misspelt ones. Others are as good. */
export const oftenNamed: readonly string[] = facts.often_named;

/**
 * Regions of Amazon's cloud, whether or not they have Bedrock. Source: AWS General Reference, and
 * for those of governments the partitions of the official SDK.
 */
export const knownRegions: readonly string[] = facts.regions;

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

/** Models that have ended or will end. Ends that are only "no sooner than" are not here. */
export const endsOfLife: readonly EndOfLife[] = facts.ends_of_life.flatMap(
  ({ source, as_of: asOf, models }) =>
    Object.entries(models).map(([model, endsOn]) => ({ model, endsOn, source, asOf })),
);

/** The end of the model that an identifier or an ARN names; most have none yet. */
export function endOfLifeOf(identifier: string): EndOfLife | undefined {
  const named = namedByArn.exec(identifier)?.[1] ?? identifier;
  const model = foundationModelOf(named);
  if (model === undefined) return undefined;
  // The size of its context window may follow: `...-v1:0:200k`.
  return endsOfLife.find((end) => model === end.model || model.startsWith(`${end.model}:`));
}

const namedByArn = /^arn:[^:]*:bedrock:[^:]*:[^:]*:(?:foundation-model|inference-profile)\/(.+)$/;

function keysOf<Key extends string>(object: Readonly<Record<Key, unknown>>): readonly Key[] {
  return Object.keys(object).filter((key): key is Key => key in object);
}
