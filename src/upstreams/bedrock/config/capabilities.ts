import { z } from "zod";
import { flag, requiredWholeNumber, wholeNumber } from "../../../settings/values.ts";

/**
 * What a chat model supports. A request that needs more is refused, or loses the field if allowed.
 * Each capability has its schema in the file and the value for most models of the provider. Every
 * difference in the table of families comes from a refusal by a model.
 */
const shape = {
  system: flag("Supports system instructions; otherwise they precede the first message.", true),
  tools: flag("Supports tools.", true),
  streamingTools: flag(
    "Supports tools in streams; otherwise the whole answer is replayed as a stream.",
    true,
  ),
  toolChoice: flag("Supports forcing a tool call.", true),
  /** Without this, one of several tools is offered alone. */
  namedToolChoice: flag("Supports forcing a named tool.", true),
  toolResultsWithText: flag("Supports tool results and user text in one turn.", true),
  singleToolCalls: flag("Supports `parallel_tool_calls: false`.", false),
  temperature: flag("Supports `temperature`.", true),
  topP: flag("Supports `top_p`.", true),
  topPWithTemperature: flag("Supports `top_p` and `temperature` together.", true),
  topK: flag("Supports `top_k`.", false),
  stop: flag("Supports `stop`; otherwise the gateway cuts the text itself.", true),
  prefill: flag("Supports conversations that end with an assistant message.", false),
  images: flag("Supports images.", false),
  toolResultImages: flag(
    "Supports images in tool results; otherwise they follow the results in the user's turn.",
    false,
  ),
  // The provider leaves both to the models. The numbers are Claude's, the best known. Models with
  // lower limits refuse by themselves, and an operator can allow more.
  maxImages: wholeNumber({
    about: "Maximum images per request.",
    min: 1,
    max: 100_000,
    initial: 100,
  }),
  maxImageBytes: wholeNumber({
    about: "Maximum bytes of one decoded image.",
    min: 1,
    max: 1_000_000_000,
    initial: 5 * 1024 * 1024,
  }),
  documents: flag("Supports documents.", true),
  promptCaching: flag("Supports prompt cache points.", false),
  /** Instead of five minutes. */
  promptCacheHour: flag("Supports caching prompts for an hour.", false),
  promptCacheTools: flag("Supports cache points among the tools.", true),
  /** An earlier point has no effect. For a family, this is the lowest number of its models. */
  promptCacheMinTokens: wholeNumber({
    about: "Minimum tokens of a cached prompt.",
    min: 0,
    max: 100_000_000,
    initial: 1_024,
  }),
  /** Includes the schema of a tool's input with `strict`. */
  jsonSchema: flag("Supports JSON schemas for answers.", false),
  reasoning: z
    .enum(["none", "thinking-budget", "adaptive", "effort-field", "nova-effort"])
    .prefault("none")
    .describe("How `reasoning_effort` is sent."),
  thinkingOff: z
    .enum(["omit", "disabled", "between-tools", "never"])
    .prefault("omit")
    .describe("How thinking is turned off: by omission, by a type, or not at all."),
  /** An effort between `high` and `max`. */
  xhighEffort: flag("Supports the effort `xhigh`.", false),
  omitsThoughts: flag("Omits thoughts unless a summary is requested.", false),
  /** The cap if the caller sets none; undefined if only the model's configuration sets one. */
  maxOutputTokens: requiredWholeNumber({
    about: "Maximum output tokens that the model accepts; more is 400.",
    min: 1,
    max: 100_000_000,
  }).optional(),
  /** Applies to the history. */
  nineCharacterToolIds: flag("Requires tool call ids of nine letters and digits.", false),
  countTokens: flag("Supports counting the tokens of a request.", false),
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
