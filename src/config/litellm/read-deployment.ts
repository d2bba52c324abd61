import type { JsonObject } from "../../domain/json-object.ts";
import { targetPriceSchema } from "../sections/prices.ts";
import { priceOf, pricesOf } from "./convert-prices.ts";
import { type ConvertedTarget, convertTarget } from "./convert-target.ts";
import type { Entry } from "./entry.ts";
import type { Preference } from "./rank-targets.ts";
import { sizesOf } from "./sizes.ts";

export type ModelKind = "chat" | "embedding";

/** One entry of LiteLLM's list, with the sections of the file that it depends on. */
export interface DeploymentEntry {
  readonly params: Entry;
  readonly info: Entry;
  readonly settings: Entry;
  readonly router: Entry;
  /** Says what the operator should know of the deployment, or of all of them. */
  readonly tell: (sentence: string, about?: string) => void;
}

export interface Deployment {
  readonly kind: ModelKind;
  /** The text from which the upstream's name is made. */
  readonly place: string;
  readonly upstream: JsonObject;
  /** The upstream has a limit that belongs to this deployment alone. */
  readonly isAlone: boolean;
  /** Without the upstream's name. */
  readonly target: JsonObject;
  readonly price: JsonObject | undefined;
  readonly preference: Preference;
  readonly window: number | undefined;
  readonly output: number | undefined;
}

/** A text is the reason why the deployment is left out. Throws nothing. */
export function readDeployment(entry: DeploymentEntry): Deployment | string {
  const { params, info, tell } = entry;
  const mode = modeOf(entry);
  if (mode !== "chat" && mode !== "embedding") {
    return `its mode is ${mode}, and Sluice serves chat and embeddings`;
  }
  const converted = convertTarget(params, tell);
  if (typeof converted === "string") return converted;
  const { place, upstream, model, api } = converted;
  if (mode === "embedding" && !api.hasEmbeddings) return "its provider has no embeddings";
  const sizes = readSizes(model, mode, entry);
  const own = mode === "chat" ? readSection(converted, sizes.output, entry) : {};
  const parallel = params.size("max_parallel_requests");
  const dropped = api.isAdapted ? [] : readDroppedFields(params);
  const timeouts = readTimeouts(entry);
  const preference = {
    order: wholeNumber(params.number("order") ?? info.number("order")),
    weight: params.number("weight"),
    rpm: params.number("rpm"),
    tpm: params.number("tpm"),
  };
  if (preference.rpm !== undefined || preference.tpm !== undefined) tell(rateIsShare);
  return {
    kind: mode,
    place,
    upstream: {
      ...upstream,
      ...(dropped.length > 0 && { drop_fields: dropped }),
      ...(Object.keys(timeouts).length > 0 && { timeouts }),
      ...(parallel && { max_in_flight: Math.min(parallel, 65_336) }),
    },
    isAlone: parallel !== undefined,
    target: { model, ...(Object.keys(own).length > 0 && { [String(upstream["kind"])]: own }) },
    price: readPrice(entry, mode),
    preference,
    ...sizes,
  };
}

/** LiteLLM's cap for models that must have one and whose limit it does not know. */
const usualMaxTokens = 4096;

const rateIsShare =
  "rpm and tpm of a deployment are shares of calls here, not limits; `max_in_flight` and pools bound a " +
  "target, plans bound keys";

/** Without a mode, LiteLLM goes by its own list of models. */
function modeOf({ params, info }: DeploymentEntry): string {
  const written = info.text("mode")?.toLowerCase();
  // Chat by another API of the provider.
  if (written === "responses") return "chat";
  const model = params.peek("model");
  const byName = modesByName.find(([pattern]) => typeof model === "string" && pattern.test(model));
  return written ?? byName?.[1] ?? "chat";
}

const modesByName: readonly (readonly [RegExp, string])[] = [
  [/rerank/i, "rerank"],
  [/embed|bge-|e5-|minilm/i, "embedding"],
  [/dall-e|image|stab(?:le-|ility\.)|nova-canvas|flux/i, "image_generation"],
  [/realtime|nova-sonic/i, "realtime"],
  [/whisper|transcribe/i, "audio_transcription"],
  [/(?:^|[/-])tts(?:-|$)|speech/i, "audio_speech"],
  [/moderation/i, "moderation"],
  [/(?:^|[/-])sora-|veo-|nova-reel/i, "video_generation"],
  [/turbo-instruct|davinci|babbage/i, "completion"],
];

function readSizes(
  model: string,
  kind: ModelKind,
  { params, info, tell }: DeploymentEntry,
): Pick<Deployment, "window" | "output"> {
  const either = info.size("max_tokens");
  const input = info.size("max_input_tokens") ?? (kind === "embedding" ? either : undefined);
  const served = params.size("num_ctx");
  if (served !== undefined) {
    tell(
      "num_ctx is the context_window here; OLLAMA_CONTEXT_LENGTH sets it at the server, which no request does",
    );
  }
  const known = sizesOf(info.text("base_model") ?? "") ?? sizesOf(model);
  const window = input ?? served ?? known?.window;
  if (window !== undefined && window === known?.window && input === undefined) {
    tell("Sizes are those that are known of the model", `(${window})`);
  }
  if (kind === "embedding") return { window, output: undefined };
  return { window, output: info.size("max_output_tokens") ?? either ?? known?.output };
}

function readSection(
  { section, api }: ConvertedTarget,
  output: number | undefined,
  { params, info, settings, tell }: DeploymentEntry,
): JsonObject {
  const isDropping = params.flag("drop_params") ?? settings.flag("drop_params") ?? false;
  if (!api.isAdapted) {
    if (isDropping) tell(dropsNothing, "all");
    return { ...section, ...(info.text("mode") === "responses" && { api: "responses" }) };
  }
  const usual = api.needsCap && output === undefined ? usualMaxTokens : undefined;
  const most = params.size("max_completion_tokens") ?? params.size("max_tokens") ?? usual;
  return {
    ...section,
    ...(isDropping && { drop_unsupported: true }),
    ...(most && { default_output_tokens: most }),
  };
}

/** Undefined: it is not whole, so its fields stay unread. */
function readPrice({ params, info }: DeploymentEntry, mode: ModelKind): JsonObject | undefined {
  // The later section counts.
  const fields = [info, params].flatMap((section) =>
    section.keys
      .filter((name) => priceOf(name, section.peek(name)) !== undefined)
      .map((name) => ({ section, name })),
  );
  const written = fields.map(({ section, name }) => [name, section.peek(name)] as const);
  const price = pricesOf({ ...Object.fromEntries(written), mode });
  if (price === undefined || !targetPriceSchema.safeParse(price).success) return undefined;
  for (const { section, name } of fields) section.value(name);
  return price;
}

const dropsNothing =
  "drop_params drops nothing at servers of kind openai, which get all fields of a request; list those that " +
  "one refuses in its drop_fields";

/** LiteLLM also names parts of fields, such as `tools[*].strict`, which then are left unread. */
function readDroppedFields(params: Entry): readonly string[] {
  const fields = params.peek("additional_drop_params");
  const isPlainList = Array.isArray(fields) && fields.every((field) => isFieldName(field));
  return isPlainList ? params.list("additional_drop_params").filter(isFieldName) : [];
}

function isFieldName(field: unknown): field is string {
  return typeof field === "string" && /^[a-z_]+$/.test(field);
}

/** LiteLLM has one time for all of them, and another for streams. The nearest setting counts. */
function readTimeouts({ params, settings, router, tell }: DeploymentEntry): JsonObject {
  const usual = settings.number("request_timeout");
  const ofRouter = router.number("timeout") ?? usual;
  const ofStreams = router.number("stream_timeout");
  const whole = params.number("timeout") ?? ofRouter;
  const first = params.number("stream_timeout") ?? ofStreams ?? whole;
  if (whole !== undefined) {
    tell("timeout is `timeouts.total` of the upstream, which bounds streams too", "all");
  }
  const silent = first && durationOf(first, 3600);
  return {
    ...(silent && { first_byte: silent, idle: silent }),
    ...(whole && { total: durationOf(Math.max(whole, first ?? 0), 86_400) }),
  };
}

function durationOf(seconds: number, most: number): string {
  const milliseconds = Math.round(Math.min(Math.max(seconds, 0.01), most) * 1000);
  return milliseconds % 1000 === 0 ? `${milliseconds / 1000}s` : `${milliseconds}ms`;
}

function wholeNumber(value: number | undefined): number | undefined {
  return value !== undefined && Number.isInteger(value) ? value : undefined;
}
