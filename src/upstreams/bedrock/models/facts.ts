import {
  type Capabilities,
  type FamilyFacts,
  familiesSchema,
  usualCapabilities,
} from "../config/capabilities.ts";
import { suggest } from "../../../domain/suggest.ts";
import type { SettingProblem } from "../../../settings/values.ts";
import { keysOf } from "../../../domain/json-fields.ts";
import facts from "./facts.json" with { type: "json" };

/** What is known of the provider's models and regions, with its sources, is in `facts.json`. */

export type ChatFamily = keyof typeof facts.families;
export type EmbeddingFamily = keyof typeof facts.embedding_families;

type Families = Readonly<Record<string, FamilyFacts>>;

const builtIn: Families = familiesSchema.parse(facts.families);

export const chatFamilies = keysOf(facts.families);
export const embeddingFamilies = keysOf(facts.embedding_families);

/** The families of models: those of `facts.json`, and what an operator adds to them. */
export class ModelFamilies {
  readonly #rows: ReadonlyMap<string, FamilyFacts>;
  readonly #patterns: readonly (readonly [RegExp, string])[];

  /** `added`: new families, or other values of known ones. Their patterns come last. */
  constructor(added: Families = {}) {
    const changed = Object.entries(added).map(([name, row]) => {
      const known = Object.hasOwn(builtIn, name) ? builtIn[name] : undefined;
      const capabilities = { ...known?.capabilities, ...row.capabilities };
      return [name, { ...known, ...row, capabilities }] as const;
    });
    this.#rows = new Map([...Object.entries(builtIn), ...changed]);
    this.#patterns = [
      ...Object.entries(facts.embedding_families),
      ...[builtIn, added].flatMap((rows) =>
        Object.entries(rows).map(([name, { models }]) => [name, models] as const),
      ),
    ].flatMap(([name, models]) => (models === undefined ? [] : [[new RegExp(models), name]]));
  }

  /** Of chat models. */
  get names(): readonly string[] {
    return [...this.#rows.keys()];
  }

  /** The usual ones for a family that is not known. */
  capabilitiesOf(family: string): Capabilities {
    const row = this.#rows.get(family);
    if (row === undefined) return usualCapabilities;
    const { like, capabilities } = row;
    return {
      ...(like === undefined ? usualCapabilities : this.capabilitiesOf(like)),
      ...capabilities,
    };
  }

  /** Where its facts are from. */
  sourceOf(family: string): string {
    const { source = `family ${family}`, as_of: asOf } = this.#rows.get(family) ?? {};
    return asOf === undefined ? source : `${source}, read ${asOf}`;
  }

  /**
   * The family that a foundation model's or system profile's identifier names. Undefined for ARNs,
   * which do not contain it, and for unknown models.
   */
  familyOf(identifier: string): string | undefined {
    const foundation = foundationModelOf(identifier);
    if (foundation === undefined) return undefined;
    return this.#patterns.findLast(([models]) => models.test(foundation))?.[1];
  }
}

/** Those of `facts.json` alone. */
export const knownFamilies = new ModelFamilies();

/** Contradictions between the families that an operator adds; paths begin at them. */
export function addedFamilyProblems(added: Families): readonly SettingProblem[] {
  const { names } = new ModelFamilies(added);
  return Object.entries(added).flatMap(([name, { like }]): SettingProblem[] => {
    const message = "is a family of embedding models";
    if (isEmbeddingFamily(name)) return [{ path: [name], message }];
    if (like === undefined) return [];
    const path = [name, "like"];
    if (!names.includes(like)) {
      const meant = suggest(like, names);
      const hint = meant === undefined ? "" : `; did you mean '${meant}'?`;
      return [{ path, message: `no family has this name${hint}` }];
    }
    return isLikeItself(name, added) ? [{ path, message: "leads back to the family itself" }] : [];
  });
}

function isLikeItself(name: string, added: Families): boolean {
  const seen = new Set<string>();
  for (let at: string | undefined = name; at !== undefined;) {
    if (seen.has(at)) return at === name;
    seen.add(at);
    at = added[at]?.like ?? builtIn[at]?.like;
  }
  return false;
}

export function isEmbeddingFamily(family: string): family is EmbeddingFamily {
  return Object.hasOwn(facts.embedding_families, family);
}

/** The foundation model behind a system profile, or the identifier itself; an ARN hides it. */
export function foundationModelOf(identifier: string): string | undefined {
  return identifier.startsWith("arn:") ? undefined : identifier.replace(geography, "");
}

/** The prefix of system profiles' identifiers before the foundation model's. */
const geography = new RegExp(`^(?:${Object.keys(facts.geographies).join("|")}|global)[.]`);

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
  const named = namedModelOf(identifier);
  const model = named && foundationModelOf(named);
  if (model === undefined) return undefined;
  // The size of its context window may follow: `...-v1:0:200k`.
  return endsOfLife.find((end) => model === end.model || model.startsWith(`${end.model}:`));
}

/** The foundation model or system profile that an identifier or an ARN names, if it does. */
export function namedModelOf(identifier: string): string | undefined {
  if (!identifier.startsWith("arn:")) return identifier;
  return namedByArn.exec(identifier)?.[1];
}

const namedByArn = /^arn:[^:]*:bedrock:[^:]*:[^:]*:(?:foundation-model|inference-profile)\/(.+)$/;
