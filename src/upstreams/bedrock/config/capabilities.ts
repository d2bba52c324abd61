import { z } from "zod";
import { flag, requiredWholeNumber, wholeNumber } from "../../../settings/values.ts";

/**
 * What a chat model takes: a request that needs more is refused, or loses the field if allowed.
 * Each capability has its schema in the file and the value for most models of the provider. Every
 * difference in the table of families comes from a model's refusal.
 */
const shape = {
  system: flag("Takes instructions of their own; else they stand before the first words.", true),
  tools: flag("Takes tools.", true),
  streamingTools: flag(
    "Takes tools in streamed answers; else the whole answer is replayed as a stream.",
    true,
  ),
  toolChoice: flag("Takes that some tool must be called.", true),
  /** Otherwise one tool of several is offered alone. */
  namedToolChoice: flag("Takes the name of the tool that must be called.", true),
  toolResultsWithText: flag("Takes tool results and words of the user in one turn.", true),
  singleToolCalls: flag("Takes `parallel_tool_calls: false`.", false),
  temperature: flag("Takes `temperature`.", true),
  topP: flag("Takes `top_p`.", true),
  topPWithTemperature: flag("Takes `top_p` and `temperature` together.", true),
  topK: flag("Takes `top_k`, in the place where its family has it.", false),
  stop: flag("Takes `stop`; else the gateway ends the text itself.", true),
  prefill: flag("Takes a conversation that ends with the assistant's words.", false),
  images: flag("Takes images.", false),
  toolResultImages: flag("Takes images in results of tools.", false),
  // The provider leaves both to the models. The numbers are Claude's, which are the best known:
  // models that take less refuse by themselves, and an operator can allow more.
  maxImages: wholeNumber({
    about: "Most images of one request.",
    min: 1,
    max: 100_000,
    initial: 100,
  }),
  maxImageBytes: wholeNumber({
    about: "Most bytes of one image, decoded.",
    min: 1,
    max: 1_000_000_000,
    initial: 5 * 1024 * 1024,
  }),
  documents: flag("Takes documents.", true),
  promptCaching: flag("Takes points up to which a prompt may be cached.", false),
  /** Instead of five minutes. */
  promptCacheHour: flag("Keeps prompts for an hour if asked to.", false),
  promptCacheTools: flag("Takes such points among the tools.", true),
  /** An earlier point has no effect. For a family, the number of the model with the lowest. */
  promptCacheMinTokens: wholeNumber({
    about: "Fewest tokens of a prompt that the model keeps.",
    min: 0,
    max: 100_000_000,
    initial: 1_024,
  }),
  /** Also those of a tool's input with `strict`. */
  jsonSchema: flag("Takes JSON schemas of answers.", false),
  reasoning: z
    .enum(["none", "thinking-budget", "adaptive", "effort-field", "nova-effort"])
    .prefault("none")
    .describe("How `reasoning_effort` is asked for."),
  thinkingOff: z
    .enum(["omit", "disabled", "between-tools", "never"])
    .prefault("omit")
    .describe("How the model is kept from thinking: by not asking for it, by a type, or never."),
  /** An effort between `high` and `max`. */
  xhighEffort: flag("Takes the effort `xhigh`.", false),
  omitsThoughts: flag("Leaves thoughts out unless a summary of them is asked for.", false),
  /** The cap if the caller sets none; undefined where only the model's configuration sets one. */
  maxOutputTokens: requiredWholeNumber({
    about: "Most tokens of one answer that the model takes; callers who ask for more get 400.",
    min: 1,
    max: 100_000_000,
  }).optional(),
  /** In the history. */
  nineCharacterToolIds: flag("Wants ids of tool calls of nine letters and digits.", false),
  countTokens: flag("Counts the tokens of a request without running it.", false),
};

const capabilities = z.object(shape);

export type Capabilities = Readonly<z.output<typeof capabilities>>;

/** The values for most models of the provider. */
export const usualCapabilities: Capabilities = capabilities.parse({});

const keys = capabilities.keyof().options.map((name) => [name, keyOf(name)] as const);

/** Only what the file sets: the rest is the family's. */
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
