import { isSameValue, type JsonObject } from "../../domain/json-object.ts";
import { convertTarget } from "./convert-target.ts";
import { Entry } from "./entry.ts";

export interface Converted {
  readonly file: JsonObject;
  /** Sentences about what was not converted, or should be checked. */
  readonly notes: readonly string[];
}

interface ConvertedModel {
  readonly kind: "chat" | "embedding";
  context_window: number | undefined;
  max_output_tokens: number | undefined;
  fallbacks: string[];
  readonly targets: JsonObject[];
}

const guessedWindow = { chat: 128_000, embedding: 8_192 } as const;

/** Converts a parsed configuration of LiteLLM's proxy. Names each setting that has no counterpart. */
export function convertLiteLlm(tree: JsonObject): Converted {
  return new Conversion(new Entry(tree)).convert();
}

class Conversion {
  readonly #file: Entry;
  readonly #upstreams = new Map<string, JsonObject>();
  readonly #models = new Map<string, ConvertedModel>();
  readonly #notes = new Set<string>();
  #dropsParams = false;

  constructor(file: Entry) {
    this.#file = file;
  }

  convert(): Converted {
    const settings = this.#file.map("litellm_settings");
    this.#dropsParams = flagOf(settings, "drop_params") ?? false;
    for (const [index, value] of this.#file.list("model_list").entries()) {
      this.#addDeployment(new Entry(value), `model_list[${index}]`);
    }
    const router = this.#file.map("router_settings");
    for (const each of [settings, router]) {
      this.#addFallbacks(each.list("fallbacks"));
      this.#addFallbacks(each.list("context_window_fallbacks"));
    }
    this.#noteUnread(settings, "litellm_settings");
    this.#noteUnread(router, "router_settings");
    this.#noteUnread(this.#file.map("general_settings"), "general_settings");
    this.#noteUnread(this.#file);
    const file = {
      environments: [{ name: "production", hosts: ["*"], models: ["*"] }],
      upstreams: Object.fromEntries(this.#upstreams),
      models: Object.fromEntries([...this.#models].map(([alias, model]) => [alias, plain(model)])),
    };
    if (this.#notes.size > 0) this.#notes.add("docs/coming-from.md says what Sluice has instead.");
    return { file, notes: [...this.#notes] };
  }

  #addDeployment(deployment: Entry, place: string): void {
    const alias = deployment.text("model_name") ?? "";
    const params = deployment.map("litellm_params");
    const info = deployment.map("model_info");
    const target = alias === "" || alias.includes("*") ? undefined : convertTarget(params);
    if (target === undefined) {
      const advice = "a wildcard, or a provider that needs its api_base here";
      this.#notes.add(`${place} (${alias || "without a name"}) is left out: ${advice}.`);
      return;
    }
    const kind = kindOf(info, target.model);
    if (typeof kind !== "string") {
      const reason = `its mode is ${kind.mode}, and Sluice serves chat and embeddings`;
      this.#notes.add(`${place} (${alias}) is left out: ${reason}.`);
      return;
    }
    const model = this.#modelOf(alias, kind);
    if (model.kind !== kind) {
      const reason = `${alias} has deployments of kind ${model.kind} before`;
      this.#notes.add(`${place} (${alias}) is left out: ${reason}.`);
      return;
    }
    this.#readSizes(alias, model, info);
    const isBedrock = target.upstream["kind"] === "bedrock";
    const isDropping = flagOf(params, "drop_params") ?? this.#dropsParams;
    if (isDropping && !isBedrock) this.#notes.add(dropsNothing);
    const dropped = isBedrock ? [] : droppedFields(params);
    const fields = { ...target.upstream, ...(dropped.length > 0 && { drop_fields: dropped }) };
    const upstream = this.#upstreamOf(target.place, fields);
    const names = { upstream, model: target.model };
    if (
      model.targets.some((each) => each["upstream"] === upstream && each["model"] === names.model)
    ) {
      this.#notes.add(`${place} (${alias}) is left out: it repeats another deployment.`);
      return;
    }
    const bedrock = isDropping &&
      isBedrock &&
      kind === "chat" && { bedrock: { drop_unsupported: true } };
    model.targets.push({ ...names, ...orderOf(params), ...bedrock });
    this.#noteUnread(params, `${place}.litellm_params`);
    info.value("id");
    this.#noteUnread(info, `${place}.model_info`);
    this.#noteUnread(deployment, place);
  }

  #modelOf(alias: string, kind: ConvertedModel["kind"]): ConvertedModel {
    const sizes = { context_window: undefined, max_output_tokens: undefined };
    const model = this.#models.get(alias) ?? { kind, ...sizes, fallbacks: [], targets: [] };
    this.#models.set(alias, model);
    return model;
  }

  #readSizes(alias: string, model: ConvertedModel, info: Entry): void {
    const input = info.number("max_input_tokens");
    const output = info.number("max_output_tokens");
    const either = info.number("max_tokens");
    model.context_window ??= input ?? (model.kind === "embedding" ? either : undefined);
    if (model.kind === "chat") model.max_output_tokens ??= output ?? either;
    if (model.context_window !== undefined) return;
    model.context_window = guessedWindow[model.kind];
    const guess = `context_window of ${alias} is a guess (${model.context_window})`;
    this.#notes.add(`${guess}: LiteLLM's file does not have it, so look it up.`);
  }

  #upstreamOf(place: string, fields: JsonObject): string {
    for (const [name, known] of this.#upstreams) if (isSameValue(known, fields)) return name;
    const base = place
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, "-")
      .replace(/-$/, "");
    let name = base;
    for (let number = 2; this.#upstreams.has(name); number += 1) name = `${base}-${number}`;
    this.#upstreams.set(name, fields);
    const isInFile = ["api_key", "secret_access_key"].some((key) => isPlain(fields[key]));
    if (isInFile) {
      this.#notes.add(`upstreams.${name} has a secret in the file: better put it in a variable.`);
    }
    return name;
  }

  /** Entries such as `{ chat: [other] }`. */
  #addFallbacks(fallbacks: readonly unknown[]): void {
    for (const entry of fallbacks) {
      const map = new Entry(entry);
      for (const alias of map.unread()) {
        const wanted = map.list(alias).filter((each) => typeof each === "string");
        const model = this.#models.get(alias);
        for (const other of wanted) this.#addFallback(model, alias, other);
      }
    }
  }

  #addFallback(model: ConvertedModel | undefined, alias: string, other: string): void {
    const isChat = model?.kind === "chat" && this.#models.get(other)?.kind === "chat";
    if (!isChat || alias === other) {
      this.#notes.add(`The fallback ${alias} -> ${other} is left out: both must be chat models.`);
    } else if (!model.fallbacks.includes(other)) model.fallbacks.push(other);
  }

  #noteUnread(entry: Entry, place = ""): void {
    for (const key of entry.unread()) {
      const name = place === "" ? key : `${place}.${key}`;
      this.#notes.add(`${name} is not carried over.`);
    }
  }
}

interface OtherMode {
  readonly mode: string;
}

/** Without a mode, LiteLLM goes by its own list of models. */
function kindOf(info: Entry, model: string): ConvertedModel["kind"] | OtherMode {
  const mode = info.text("mode")?.toLowerCase() ?? modeOf(model);
  switch (mode) {
    case "chat":
    case "embedding":
      return mode;
    default:
      return { mode };
  }
}

function modeOf(model: string): string {
  return modesByName.find(([pattern]) => pattern.test(model))?.[1] ?? "chat";
}

const modesByName: readonly (readonly [RegExp, string])[] = [
  [/rerank/i, "rerank"],
  [/embed|bge-|e5-/i, "embedding"],
  [/dall-e|gpt-image|stab(?:le-|ility\.)|imagen|nova-canvas|titan-image|flux/i, "image_generation"],
  [/realtime|nova-sonic/i, "realtime"],
  [/whisper|transcribe/i, "audio_transcription"],
  [/(?:^|[/-])tts(?:-|$)|speech/i, "audio_speech"],
  [/moderation/i, "moderation"],
  [/(?:^|[/-])sora-|veo-|nova-reel/i, "video_generation"],
];

const dropsNothing =
  "drop_params is carried over for Bedrock only: servers of kind openai get all fields of a request, " +
  "so list those that one refuses in its drop_fields";

/** LiteLLM also names parts of fields, such as `tools[*].strict`, which then are left unread. */
function droppedFields(params: Entry): readonly string[] {
  const fields = params.peek("additional_drop_params");
  const isPlainList = Array.isArray(fields) && fields.every((field) => isFieldName(field));
  return isPlainList ? params.list("additional_drop_params").filter(isFieldName) : [];
}

function isFieldName(field: unknown): field is string {
  return typeof field === "string" && /^[a-z_]+$/.test(field);
}

/** Also a text, as Python reads it. */
function flagOf(params: Entry, key: string): boolean | undefined {
  const value = params.value(key);
  if (typeof value === "boolean") return value;
  return typeof value === "string" ? value.toLowerCase() === "true" : undefined;
}

const mostWeight = 1000;

/** LiteLLM picks deployments by `weight`, or else by their limits. */
function orderOf(params: Entry): JsonObject {
  const order = params.number("order");
  const [rpm, tpm] = [params.number("rpm"), params.number("tpm")];
  const share = params.number("weight") ?? rpm ?? (tpm && tpm / 1000);
  const weight = share && Math.min(mostWeight, Math.max(1, Math.round(share)));
  return { ...(order && { priority: order }), ...(weight && { weight }) };
}

function isPlain(value: unknown): boolean {
  return typeof value === "string" && !/^\$\{\w+\}$/.test(value);
}

function plain({ fallbacks, max_output_tokens: output, ...model }: ConvertedModel): JsonObject {
  const { context_window: window = 0, targets, kind } = model;
  const most = output && { max_output_tokens: Math.min(output, window) };
  const next = fallbacks.length > 0 && { fallbacks };
  return { kind, context_window: window, ...most, ...next, targets };
}
