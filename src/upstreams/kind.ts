import type { z } from "zod";
import type { Model, ModelKind } from "../domain/model.ts";
import type { SettingProblem } from "../settings/problem.ts";
import type { AdapterServices, UpstreamAdapter } from "./adapter.ts";

/**
 * All that Sluice knows of a kind of upstream. What differs between kinds (`Fields`, `Sections`,
 * `Settings`) only goes from one method of a kind to another of the same kind.
 */
export interface UpstreamKind<
  Fields extends z.ZodRawShape = z.ZodRawShape,
  Sections extends TargetSections = TargetSections,
  Settings = unknown,
> {
  /** What the file has as `kind`; also the key of what a target says to this kind alone. */
  readonly name: string;
  /** The rest of a sentence that begins with the name and "is", for the reference of the file. */
  readonly about: string;
  /** Keys of an upstream in the file, beside those of upstreams of every kind. */
  readonly fields: Fields;
  /** Defaults of `timeouts.first_byte` and `timeouts.idle`. */
  readonly answerTimes: { readonly firstByte: string; readonly idle: string };
  /** What contradicts itself in fields that are each right; paths begin at the upstream. */
  contradictions?(fields: FieldsOf<Fields>): readonly SettingProblem[];
  /** What a target may say to this kind alone, by the kind of its model. */
  readonly targetSections?: Sections;
  /** What is wrong with a target at its upstream. */
  targetProblems?(target: WrittenTarget, context: TargetContext): readonly SettingProblem[];
  /** Where a target serves; without it, at its upstream. */
  places?(target: WrittenTarget): readonly TargetPlace[];
  /** What an upstream of the file becomes: itself, or several, such as one for each region. */
  build(upstream: FileUpstream<Fields, Sections>): readonly BuiltUpstream<Settings>[];
  createAdapter(settings: Settings, services: AdapterServices): UpstreamAdapter;
  /** Models that fail soon, or already; told at each start. `now`: wall clock, ms. */
  endingModels?(settings: Settings, served: ServedModels, now: number): readonly string[];
  /** Models that are known otherwise than the operator says; told to who checks a file. */
  doubtfulModels?(settings: Settings, served: ServedModels): readonly string[];
}

/** Optional values: a target need not have the section. */
export type TargetSections = Readonly<Record<ModelKind, z.ZodType>>;

export type FieldsOf<Fields extends z.ZodRawShape> = z.output<z.ZodObject<Fields>>;

/** A target as the file has it, which may be wrong in any place: nothing read from it may throw. */
export interface WrittenTarget {
  readonly model: string;
  /** Of the target's upstream; `fields` is the whole entry. */
  readonly upstream: { readonly name: string; readonly fields: unknown };
  /** What it says to the kind of its upstream. */
  readonly section: unknown;
}

export interface TargetContext {
  readonly path: SettingProblem["path"];
  /** Of the alias; undefined when it is wrong. */
  readonly modelKind: string | undefined;
  /** Names of all of the file. */
  readonly environments: readonly string[];
}

/** A target at one of the upstreams that were built. */
export interface TargetPlace {
  readonly upstream: string;
  readonly model: string;
  /** From 0 to 99: places of a lower turn are tried first, all before the next priority. */
  readonly turn: number;
  /** What the model is called for some environments, by their name. */
  readonly modelFor: Readonly<Record<string, string>>;
}

/** An upstream of a file without problems. */
export interface FileUpstream<Fields extends z.ZodRawShape, Sections extends TargetSections> {
  readonly name: string;
  readonly fields: FieldsOf<Fields>;
  /** Of all models of the file. */
  readonly targets: readonly FileTarget<Sections>[];
}

/** The targets that name the upstream. */
export type FileTarget<Sections extends TargetSections = TargetSections> = {
  readonly alias: string;
  readonly model: string;
} & (
  | {
      readonly kind: "chat";
      readonly section: z.output<Sections["chat"]>;
      /** Of the alias, where the file has it. */
      readonly maxOutputTokens: number | undefined;
    }
  | { readonly kind: "embedding"; readonly section: z.output<Sections["embedding"]> }
);

export interface BuiltUpstream<Settings> {
  readonly name: string;
  /** For the adapter. */
  readonly settings: Settings;
}

/** By alias, those that an environment offers. */
export type ServedModels = ReadonlyMap<string, Model>;

/** The kind of something that was read with the same list. */
export function kindNamed(kinds: readonly UpstreamKind[], name: string): UpstreamKind {
  const found = kinds.find((kind) => kind.name === name);
  if (found === undefined) throw new Error(`there is no upstream kind ${name}`);
  return found;
}

/** Where a target serves, by its kind if that has a word in it. */
export function placesOf(
  kind: UpstreamKind | undefined,
  target: WrittenTarget,
): readonly TargetPlace[] {
  const { model, upstream } = target;
  return kind?.places?.(target) ?? [{ upstream: upstream.name, model, turn: 0, modelFor: {} }];
}
