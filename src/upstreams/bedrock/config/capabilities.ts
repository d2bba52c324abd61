import { z } from "zod";
import {
  flag,
  identifier,
  requiredWholeNumber,
  text,
  wholeNumber,
} from "../../../settings/values.ts";

/**
 * What a chat model supports. A request that needs more is refused, or loses the field if allowed.
 * Each capability has its schema in the file and the value for most models of the provider. Every
 * difference in the table of families comes from a refusal by a model.
 */
const shape = {
  system: flag(true).describe(
    "Supports system instructions; otherwise they precede the first message.",
  ),
  tools: flag(true).describe("Supports tools."),
  streamingTools: flag(true).describe(
    "Supports tools in streams; otherwise the whole answer is replayed as a stream.",
  ),
  toolChoice: flag(true).describe("Supports forcing a tool call."),
  /** Without this, one of several tools is offered alone. */
  namedToolChoice: flag(true).describe("Supports forcing a named tool."),
  toolResultsWithText: flag(true).describe("Supports tool results and user text in one turn."),
  singleToolCalls: flag(false).describe("Supports `parallel_tool_calls: false`."),
  temperature: flag(true).describe("Supports `temperature`."),
  topP: flag(true).describe("Supports `top_p`."),
  topPWithTemperature: flag(true).describe("Supports `top_p` and `temperature` together."),
  topK: flag(false).describe("Supports `top_k`."),
  stop: flag(true).describe("Supports `stop`; otherwise the gateway cuts the text itself."),
  prefill: flag(false).describe("Supports conversations that end with an assistant message."),
  images: flag(false).describe("Supports images."),
  toolResultImages: flag(false).describe(
    "Supports images in tool results; otherwise they follow the results in the user's turn.",
  ),
  // The provider leaves both to the models. The numbers are Claude's, the best known. Models with
  // lower limits refuse by themselves, and an operator can allow more.
  maxImages: wholeNumber(100, [1, 100_000]).describe("Maximum images per request."),
  maxImageBytes: wholeNumber(5 * 1024 * 1024, [1, 1_000_000_000]).describe(
    "Maximum bytes of one decoded image.",
  ),
  documents: flag(true).describe("Supports documents."),
  promptCaching: flag(false).describe("Supports prompt cache points."),
  /** Instead of five minutes. */
  promptCacheHour: flag(false).describe("Supports caching prompts for an hour."),
  promptCacheTools: flag(true).describe("Supports cache points among the tools."),
  /** An earlier point has no effect. For a family, this is the lowest number of its models. */
  promptCacheMinTokens: wholeNumber(1_024, [0, 100_000_000]).describe(
    "Minimum tokens of a cached prompt.",
  ),
  /** Includes the schema of a tool's input with `strict`. */
  jsonSchema: flag(false).describe("Supports JSON schemas for answers."),
  reasoning: z
    .enum(["none", "thinking-budget", "adaptive", "effort-field", "nova-effort"])
    .prefault("none")
    .describe("How `reasoning_effort` is sent."),
  thinkingOff: z
    .enum(["omit", "disabled", "between-tools", "never"])
    .prefault("omit")
    .describe("How thinking is turned off: by omission, by a type, or not at all."),
  /** An effort between `high` and `max`. */
  xhighEffort: flag(false).describe("Supports the effort `xhigh`."),
  omitsThoughts: flag(false).describe("Omits thoughts unless a summary is requested."),
  /** The cap if the caller sets none; undefined if only the model's configuration sets one. */
  maxOutputTokens: requiredWholeNumber([1, 100_000_000])
    .describe("Maximum output tokens that the model accepts; more is 400.")
    .optional(),
  outputQuotaWeight: wholeNumber(1, [1, 100]).describe(
    "Tokens of the provider's quota that a token of output takes; see `token_weights` of plans.",
  ),
  /** Applies to the history. */
  nineCharacterToolIds: flag(false).describe("Requires tool call ids of nine letters and digits."),
  countTokens: flag(false).describe("Supports counting the tokens of a request."),
};

const capabilities = z.object(shape);

export type Capabilities = Readonly<z.output<typeof capabilities>>;

/** The values for most models of the provider. */
export const usualCapabilities: Capabilities = capabilities.parse({});

const keys = capabilities.keyof().options.map((name) => [name, keyOf(name)] as const);

/** Only what the file sets; the family provides the rest. */
export const capabilitiesSchema = z
  .strictObject(
    Object.fromEntries(
      keys.map(([name, key]) => [
        key,
        shape[name]
          .unwrap()
          .optional()
          .meta(shape[name].meta() ?? {}),
      ]),
    ),
  )
  .transform((file): Partial<Capabilities> => {
    const whole = capabilities.parse(
      Object.fromEntries(keys.map(([name, key]) => [name, file[key]])),
    );
    const said: { -readonly [Name in keyof Capabilities]?: Capabilities[Name] } = whole;
    for (const [name, key] of keys) if (file[key] === undefined) delete said[name];
    return said;
  })
  .prefault({})
  .describe("What the model can do, where its family says otherwise.");

/** `topPWithTemperature` is `top_p_with_temperature` in the file. */
function keyOf(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

const pattern = z.string().refine(isPattern, "must be a regular expression");

/** Models with the same capabilities. Identifiers contain the family; an ARN does not. */
export const familySchema = z.strictObject({
  models: pattern
    .optional()
    .describe("Regular expression for foundation models. The last family that fits counts."),
  like: text("Family with the same capabilities apart from these.").optional(),
  capabilities: z
    .record(z.string(), z.unknown())
    .prefault({})
    .describe("Capabilities, with the keys of those of a target.")
    .pipe(capabilitiesSchema.unwrap()),
  source: text("Address of the page that says so.").optional(),
  as_of: z.iso.date("must be a date such as 2026-11-23").optional().describe("When it was read."),
  basis: z
    .enum(["documented", "measured", "reported"])
    .optional()
    .describe(
      "`documented`: on the provider's page. `measured`: others report what the service itself " +
        "accepted and refused. `reported`: by pages or projects that do not name their source.",
    ),
  note: text("What the source has beyond it, or where sources disagree.").optional(),
});

export type FamilyFacts = z.output<typeof familySchema>;

/** By name. */
export const familiesSchema = z.record(identifier("Family."), familySchema).prefault({});

function isPattern(source: string): boolean {
  try {
    return new RegExp(source) instanceof RegExp;
  } catch {
    return false;
  }
}
