import type { z } from "zod";
import type { Model, ModelCapabilities, ModelKind, PromptCache } from "../domain/model.ts";
import type { SettingProblem } from "../settings/values.ts";
import type { AdapterServices, UpstreamAdapter } from "./adapter.ts";

/**
 * Everything about a kind of upstream. The types that differ between kinds (`Fields`, `Sections`,
 * `Settings`) only pass between methods of the same kind.
 */
export interface UpstreamKind<
  Fields extends z.ZodRawShape = z.ZodRawShape,
  Sections extends TargetSections = TargetSections,
  Settings = unknown,
> {
  /** The value of `kind` in the file; also the key of a target's section for this kind. */
  readonly name: string;
  /** What its upstreams are, for the message about an unknown kind. */
  readonly about: string;
  /** Keys of an upstream in the file, beyond those that upstreams of every kind have. */
  readonly fields: Fields;
  /** Defaults of `timeouts.first_byte` and `timeouts.idle`. */
  readonly answerTimes: { readonly firstByte: string; readonly idle: string };
  /** Default of `connections.idle`: less than servers of the kind keep an unused connection. */
  readonly idleConnections: string;
  /**
   * Contradictions between fields that are each valid on their own; paths begin at the upstream.
   */
  contradictions?(fields: FieldsOf<Fields>): readonly SettingProblem[];
  /** Schemas of a target's section for this kind, by the kind of its model. */
  readonly targetSections?: Sections;
  /** Problems of a target at its upstream. */
  targetProblems?(target: WrittenTarget, context: TargetContext): readonly SettingProblem[];
  /** What a target's chat model can do. Absent: its servers do not tell. */
  capabilities?(target: WrittenTarget): ModelCapabilities;
  /** Tokens of the provider's quota that a token of output takes. Absent: one. */
  outputQuotaWeight?(target: WrittenTarget): number;
  /** How prompts of a target's chat model get into a cache; undefined: there is none. */
  promptCache?(target: WrittenTarget): PromptCache | undefined;
  /** Where a target is served; by default at its upstream. */
  sites?(target: WrittenTarget): readonly TargetSite[];
  /** Builds one or several upstreams from one of the file, for example one for each region. */
  build(upstream: FileUpstream<Fields, Sections>): readonly BuiltUpstream<Settings>[];
  createAdapter(settings: Settings, services: AdapterServices): UpstreamAdapter;
  /**
   * Warnings at each start about models that will soon fail, or already do. `now`: wall clock, ms.
   */
  endingModels?(settings: Settings, served: ServedModels, now: number): readonly string[];
  /** How lists of prices name a model that it calls; undefined: its identifier hides it. */
  listedAs?(settings: Settings, model: string): ListedModel | undefined;
  /** Warnings about models that the operator describes wrongly, for the check of a file. */
  doubtfulModels?(settings: Settings, served: ServedModels): readonly string[];
}

/** Optional values: a target need not have the section. */
export type TargetSections = Readonly<Record<ModelKind, z.ZodType>>;

export type FieldsOf<Fields extends z.ZodRawShape> = z.output<z.ZodObject<Fields>>;

/** A target as written in the file. It may be wrong anywhere: reading it must not throw. */
export interface WrittenTarget {
  readonly model: string;
  /** `fields` is the whole entry. */
  readonly upstream: { readonly name: string; readonly fields: unknown };
  /** The target's section for the kind of its upstream. */
  readonly section: unknown;
}

export interface TargetContext {
  readonly path: SettingProblem["path"];
  /** The kind of the alias; undefined when it is wrong. */
  readonly modelKind: string | undefined;
  /** The names of all environments of the file. */
  readonly environments: readonly string[];
}

/** A target at one of the upstreams that were built. */
export interface TargetSite {
  readonly upstream: string;
  readonly model: string;
  /** From 0 to 99: sites with a lower turn are tried first; all come before the next priority. */
  readonly turn: number;
  /** The model's identifier for some environments, by their name. */
  readonly modelFor: Readonly<Record<string, string>>;
}

/** An upstream of a file without problems. */
export interface FileUpstream<Fields extends z.ZodRawShape, Sections extends TargetSections> {
  readonly name: string;
  readonly fields: FieldsOf<Fields>;
  /** The targets at this upstream, from all models of the file. */
  readonly targets: readonly FileTarget<Sections>[];
}

export type FileTarget<Sections extends TargetSections = TargetSections> = {
  readonly alias: string;
  readonly model: string;
} & (
  | {
      readonly kind: "chat";
      readonly section: z.output<Sections["chat"]>;
      /** The alias' own, if the file has one. */
      readonly maxOutputTokens: number | undefined;
    }
  | { readonly kind: "embedding"; readonly section: z.output<Sections["embedding"]> }
);

export interface BuiltUpstream<Settings> {
  readonly name: string;
  readonly settings: Settings;
}

/** A model in lists of prices. */
export interface ListedModel {
  readonly provider: string;
  readonly model: string;
  /** Where its price may be said to apply, the most exact first; `any` is the last. */
  readonly scopes: readonly string[];
}

/** The models that an environment offers, by alias. */
export type ServedModels = ReadonlyMap<string, Model>;

/** Throws for a name that is not in the list. */
export function kindNamed(kinds: readonly UpstreamKind[], name: string): UpstreamKind {
  const found = kinds.find((kind) => kind.name === name);
  if (found === undefined) throw new Error(`there is no upstream kind ${name}`);
  return found;
}

/** Where a target is served: decided by its kind, or else at its upstream. */
export function sitesOf(
  kind: UpstreamKind | undefined,
  target: WrittenTarget,
): readonly TargetSite[] {
  const { model, upstream } = target;
  return kind?.sites?.(target) ?? [{ upstream: upstream.name, model, turn: 0, modelFor: {} }];
}
