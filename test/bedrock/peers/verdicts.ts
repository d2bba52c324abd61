import type { Peer } from "./compare.ts";

/** Who is right where a peer sends something else, and why. */
export interface Verdict {
  /** Names of requests; default: all. */
  readonly requests?: RegExp;
  /** Default: both. */
  readonly peers?: readonly Peer[];
  readonly places: RegExp;
  /** `both`: the provider takes either, and the answer is the same. */
  readonly right: "sluice" | "peer" | "both";
  readonly why: string;
}

/** The first that fits is taken: those of single requests stand before those of all. */
export const verdicts: readonly Verdict[] = [
  // What is sent of every request.
  {
    places: /^system$/,
    right: "both",
    why: "an empty list of instructions is taken as none",
  },
  {
    places: /^inferenceConfig$/,
    right: "both",
    why: "an empty object is taken as none",
  },
  {
    requests: /^reasoning (low|high|and|in)/,
    places: /^inferenceConfig\.maxTokens$/,
    right: "sluice",
    why: "the caller's cap holds for thoughts and answer together, as OpenAI's does; the peers raise it",
  },
  {
    places: /^inferenceConfig\.maxTokens$/,
    right: "sluice",
    why: "without a cap the provider reserves the model's maximum from the quota",
  },
  {
    peers: ["ai-sdk"],
    places: /^additionalModelResponseFieldPaths/,
    right: "both",
    why: "asks which stop sequence was met; OpenAI's format has no place for it",
  },

  // Sampling.
  {
    requests: /^temperature 1\.7$/,
    places: /temperature$/,
    right: "sluice",
    why: "the provider takes 0 to 1: the rest is 400 there, though OpenAI's callers may send it",
  },
  {
    requests: /^temperature and top_p, 4\.5$/,
    places: /topP$/,
    right: "sluice",
    why: "Claude 4.5 refuses both at once",
  },
  {
    requests: /^temperature, 4\.7$/,
    places: /^refused$/,
    right: "sluice",
    why: "the model refuses it; the SDK sends it and has the provider's 400",
  },
  {
    requests: /^top_k$/,
    peers: ["ai-sdk"],
    places: /top_?k$/i,
    right: "sluice",
    why: "Converse has no topK of its own: it belongs to the model's fields",
  },
  {
    requests: /^top_k, nova$/,
    peers: ["ai-sdk"],
    places: /topK$/,
    right: "sluice",
    why: "Converse has no topK of its own: Nova reads it among the model's fields",
  },
  {
    requests: /^blank stop$/,
    places: /stopSequences/,
    right: "sluice",
    why: "Claude refuses stop sequences without a visible character",
  },
  {
    requests: /^stop, llama$/,
    places: /stopSequences/,
    right: "sluice",
    why: "the model refuses the field; the gateway cuts the answer itself",
  },
  {
    requests: /^(seed and user|frequency_penalty)$/,
    places: /^refused$/,
    right: "sluice",
    why: "a hint is left out, and what changes the answer is refused unless the operator lets it be dropped",
  },

  // Conversations.
  {
    requests: /^system in the middle$/,
    places: /./,
    right: "sluice",
    why: "they stay in their place, marked as instructions: what is signed before them does not change",
  },
  {
    requests: /^system, mixtral$/,
    places: /./,
    right: "sluice",
    why: "the model refuses the field: its instructions stand before the user's words",
  },
  {
    requests: /^assistant last$/,
    places: /text$/,
    right: "sluice",
    why: "the provider refuses an end in white space",
  },
  {
    requests: /^assistant last, 4\.6$/,
    places: /^refused$/,
    right: "sluice",
    why: "the model does not go on from words of its own: the peers have the provider's 400",
  },
  {
    requests: /^(system only|assistant first|empty user text)$/,
    places: /./,
    right: "sluice",
    why: "OpenAI takes it, the provider does not: the conversation is mended",
  },
  {
    requests: /^(empty assistant text|blank part)$/,
    peers: ["ai-sdk"],
    places: /^messages/,
    right: "sluice",
    why: "blank texts are refused, and so are two turns of one role behind each other",
  },
  {
    requests: /^image, llama$/,
    places: /^refused$/,
    right: "sluice",
    why: "the model takes no images: the peers have the provider's 400",
  },
  {
    requests: /^file/,
    peers: ["litellm"],
    places: /document\.name$/,
    right: "both",
    why: "any name of allowed characters will do; the caller's says more to the model",
  },
  {
    requests: /^file without words$/,
    places: /text$/,
    right: "sluice",
    why: "a document needs a text beside it, and a dot says nothing",
  },

  // Tools.
  {
    requests: /tool|call|result/,
    peers: ["litellm"],
    places: /additionalProperties$/,
    right: "sluice",
    why: "the caller's schema is sent as it is",
  },
  {
    requests: /tool|empty arguments/,
    peers: ["litellm"],
    places: /(toolSpec\.description|json\.required)$/,
    right: "both",
    why: "filled in where the caller said nothing; the provider does not ask for it",
  },
  {
    requests: /^tool_choice required, llama$/,
    places: /^refused$/,
    right: "sluice",
    why: "the model cannot be made to call a tool: the SDK has the provider's 400",
  },
  {
    requests: /tool_choice none$/,
    peers: ["litellm"],
    places: /^refused$/,
    right: "sluice",
    why: "OpenAI takes it: no tool is offered, and earlier calls become words",
  },
  {
    requests: /^tool_choice named$/,
    peers: ["ai-sdk"],
    places: /^toolConfig/,
    right: "sluice",
    why: "the other tools are left out there: the model reads other instructions, and a cache misses",
  },
  {
    requests: /^one call at a time$/,
    places: /disable_parallel_tool_use|tool_choice\.type/,
    right: "sluice",
    why: "the peers leave out what the caller asked for",
  },
  {
    requests: /^tool loop (without tools|,)|^tool loop, tool_choice none$/,
    peers: ["litellm"],
    places: /^messages/,
    right: "both",
    why: "the same words in another form",
  },
  {
    requests: /^tool loop/,
    peers: ["ai-sdk"],
    places: /^messages/,
    right: "sluice",
    why: "the SDK drops calls and results, and the model answers without them",
  },
  {
    requests: /^two results and words, mistral$/,
    places: /toolUseId$/,
    right: "sluice",
    why: "the model takes ids of nine letters and digits; ours are the same for the same id, so that a cache can hit",
  },
  {
    requests: /^two results and words, mistral$/,
    places: /^messages/,
    right: "sluice",
    why: "the model refuses results and words in one turn",
  },
  {
    requests: /^empty result$/,
    places: /content/,
    right: "sluice",
    why: "no content is taken, an empty text is refused",
  },
  {
    requests: /^result with parts$/,
    peers: ["ai-sdk"],
    places: /content/,
    right: "both",
    why: "the SDK's own form has one text",
  },
  {
    requests: /^tool name with a dot$/,
    places: /name$/,
    right: "sluice",
    why: "the provider refuses dots; without a mark of its own two names could become one",
  },

  // Answers in a form.
  {
    requests: /^json_object$/,
    places: /^system/,
    right: "sluice",
    why: "nothing else tells the model",
  },
  {
    requests: /^json_schema/,
    places: /toolSpec\.(name|description)$|toolChoice/,
    right: "both",
    why: "the answer's tool under another name; the caller's tells the model more",
  },
  {
    requests: /^json_schema/,
    peers: ["litellm"],
    places: /additionalProperties$/,
    right: "sluice",
    why: "the caller's schema is sent as it is",
  },
  {
    requests: /json_schema.*, 4\.5$/,
    peers: ["ai-sdk"],
    places: /^outputConfig|output_config/,
    right: "both",
    why: "Converse's own field and the model's: the documents name the former",
  },

  {
    requests: /^bounded json_schema, 4\.5$/,
    peers: ["litellm"],
    places: /properties/,
    right: "sluice",
    why: "the provider refuses these keywords: they stand in the descriptions",
  },
  {
    requests: /^json_schema and tools$/,
    places: /^toolConfig\.tools/,
    right: "both",
    why: "the same tools in another order; the caller's come first, so that a cache can hit",
  },
  {
    requests: /^json_schema, llama$/,
    places: /^refused$/,
    right: "sluice",
    why: "a tool that the model cannot be made to call is no promise of a schema",
  },

  // Prompt caching.
  {
    requests: /^cached tool$/,
    peers: ["ai-sdk"],
    places: /cachePoint/,
    right: "sluice",
    why: "the SDK has no mark for tools",
  },
  {
    requests: /^five cached parts$/,
    places: /^messages/,
    right: "sluice",
    why: "the provider takes four points: the last ones keep the most",
  },

  // Thinking.
  {
    requests: /^reasoning/,
    places: /budget_tokens$/,
    right: "sluice",
    why: "an effort is nobody's number; ours leaves half of the caller's cap to the answer",
  },
  {
    requests: /^reasoning, 4\.6$/,
    places: /display$/,
    right: "both",
    why: "the model shows its thoughts by default",
  },
  {
    requests: /^reasoning, 4\.7$/,
    places: /display$/,
    right: "sluice",
    why: "without it the model leaves the text of its thoughts out",
  },
  {
    requests: /^reasoning, 4\.7$/,
    places: /effort$/,
    right: "sluice",
    why: "the model knows xhigh: it need not be max",
  },
  {
    requests: /^reasoning in a tool loop$/,
    places: /thinking\.type$/,
    right: "sluice",
    why: "no thoughts came back with the calls, and the model refuses to think without them",
  },
  {
    requests: /^reasoning and a forced tool$/,
    places: /thinking\.type$|toolChoice/,
    right: "sluice",
    why: "a model that thinks refuses to be forced: the caller's order counts more than the effort",
  },
  {
    requests: /^reasoning/,
    places: /^additionalModelResponseFieldPaths/,
    right: "both",
    why: "asks for the count of thoughts, as Sluice does where the model thinks",
  },
  {
    requests: /^reasoning and temperature$/,
    peers: ["litellm"],
    places: /temperature$/,
    right: "sluice",
    why: "a model that thinks refuses a temperature other than 1",
  },
];
