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
  system: flag(true).describe("If false, instructions precede the first message."),
  tools: flag(true).describe("Supports what it names."),
  streamingTools: flag(true).describe(
    "If false, a whole answer with tools is replayed as a stream.",
  ),
  toolChoice: flag(true).describe("A tool call can be forced."),
  /** Without this, one of several tools is offered alone. */
  namedToolChoice: flag(true).describe("A named tool can be forced."),
  toolResultsWithText: flag(true).describe("Tool results and user text may share a turn."),
  singleToolCalls: flag(false).describe("`parallel_tool_calls: false` works."),
  temperature: flag(true).describe("Supports what it names."),
  topP: flag(true).describe("Supports what it names."),
  topPWithTemperature: flag(true).describe("Both may be sent."),
  topK: flag(false).describe("Supports what it names."),
  stop: flag(true).describe("If false, the gateway cuts the text itself."),
  prefill: flag(false).describe("The last message may be the assistant's."),
  images: flag(false).describe("Supports what it names."),
  toolResultImages: flag(false).describe("If false, they follow the results in the user's turn."),
  // The provider leaves both to the models. The numbers are Claude's, the best known. Models with
  // lower limits refuse by themselves, and an operator can allow more.
  maxImages: wholeNumber(100, [1, 100_000]).describe("Maximum images per request."),
  maxImageBytes: wholeNumber(5 * 1024 * 1024, [1, 1_000_000_000]).describe(
    "Maximum bytes of one decoded image.",
  ),
  documents: flag(true).describe("Supports what it names."),
  promptCaching: flag(false).describe("Supports what it names."),
  /** Instead of five minutes. */
  promptCacheHour: flag(false).describe("Prompts can be cached for an hour."),
  promptCacheTools: flag(true).describe("Cache points are allowed among tools."),
  /** An earlier point has no effect. For a family, this is the lowest number of its models. */
  promptCacheMinTokens: wholeNumber(1_024, [0, 100_000_000]).describe(
    "Minimum tokens of a cached prompt.",
  ),
  /** Includes the schema of a tool's input with `strict`. */
  jsonSchema: flag(false).describe("Supports what it names."),
  reasoning: z
    .enum(["none", "thinking-budget", "adaptive", "effort-field", "nova-effort"])
    .prefault("none")
    .describe("How `reasoning_effort` is sent."),
  thinkingOff: z
    .enum(["omit", "disabled", "between-tools", "never"])
    .prefault("omit")
    .describe("How thinking is turned off."),
  /** An effort between `high` and `max`. */
  xhighEffort: flag(false).describe("Supports what it names."),
  omitsThoughts: flag(false).describe("Omits thoughts unless a summary is requested."),
  /** The cap if the caller sets none; undefined if only the model's configuration sets one. */
  maxOutputTokens: requiredWholeNumber([1, 100_000_000])
    .describe("Largest output cap; more is 400.")
    .optional(),
  outputQuotaWeight: wholeNumber(1, [1, 100]).describe(
    "Tokens of the provider's quota that a token of output takes.",
  ),
  /** Applies to the history. */
  nineCharacterToolIds: flag(false).describe("Tool call ids must have nine letters and digits."),
  countTokens: flag(false).describe("Supports what it names."),
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
  .describe("What the model supports, where its family says otherwise.");

/** `topPWithTemperature` is `top_p_with_temperature` in the file. */
function keyOf(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

const pattern = z.string().refine(isPattern, "must be a regular expression");

/** Models with the same capabilities. Identifiers contain the family; an ARN does not. */
export const familySchema = z.strictObject({
  models: pattern
    .optional()
    .describe("Regular expression for models. The last family that fits counts."),
  like: text("Family with the same capabilities apart from these.").optional(),
  capabilities: z
    .record(z.string(), z.unknown())
    .prefault({})
    .describe("Capabilities, with the keys of those of a target.")
    .pipe(capabilitiesSchema.unwrap()),
  source: text("Where they are from.").optional(),
  as_of: z.iso.date("must be a date such as 2026-11-23").optional().describe("When it was read."),
  basis: z
    .enum(["documented", "measured", "reported"])
    .optional()
    .describe("How the facts are known."),
  note: text("A remark.").optional(),
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
