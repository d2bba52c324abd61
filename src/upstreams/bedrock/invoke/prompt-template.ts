/** The role and the text of one turn. */
export interface SpokenTurn {
  readonly role: "user" | "assistant";
  readonly text: string;
}

export interface SpokenConversation {
  /** Empty without instructions. */
  readonly system: string;
  /** User and assistant alternate, the user first. The model continues a last assistant turn. */
  readonly turns: readonly SpokenTurn[];
}

/**
 * Writes a conversation as the one text that a model was trained on. Text in a message that looks
 * like one of the template's own tokens is broken by a space, so no message can end its turn or
 * begin another.
 */
export type PromptTemplate = (conversation: SpokenConversation) => string;

/** Llama 3 and later. Form as in Meta's model cards. */
export const llamaPrompt: PromptTemplate = ({ system, turns }) => {
  const turn = (role: string, text: string): string =>
    `<|start_header_id|>${role}<|end_header_id|>\n\n${breakAngleTokens(text).trim()}`;
  const spoken = joinTurns(turns, (role, text) => turn(role, text), "<|eot_id|>");
  const instructions = system === "" ? "" : `${turn("system", system)}<|eot_id|>`;
  return `<|begin_of_text|>${instructions}${spoken}`;
};

/** Qwen 2 and later, whose form is ChatML. */
export const qwenPrompt: PromptTemplate = ({ system, turns }) => {
  const turn = (role: string, text: string): string =>
    `<|im_start|>${role}\n${breakAngleTokens(text)}`;
  const spoken = joinTurns(turns, (role, text) => turn(role, text), "<|im_end|>\n");
  const instructions = system === "" ? "" : `${turn("system", system)}<|im_end|>\n`;
  return `${instructions}${spoken}`;
};

/**
 * The first versions of Mistral and Mixtral, whose tokens later ones keep. Instructions go before
 * the user's first message.
 */
export const mistralPrompt: PromptTemplate = ({ system, turns }) => {
  const texts = turns.map(({ role, text }, index) => {
    const said = index === 0 && system !== "" ? `${system}\n\n${text}` : text;
    const safe = breakMistralTokens(said).trim();
    if (role === "user") return `[INST] ${safe} [/INST]`;
    return index === turns.length - 1 ? ` ${safe}` : ` ${safe}</s>`;
  });
  return `<s>${texts.join("")}`;
};

/** All turns, each ended except a last assistant turn that is to be continued. */
function joinTurns(
  turns: readonly SpokenTurn[],
  write: (role: SpokenTurn["role"], text: string) => string,
  end: string,
): string {
  const texts = turns.map(({ role, text }, index) => {
    const goesOn = role === "assistant" && index === turns.length - 1;
    return goesOn ? write(role, text) : `${write(role, text)}${end}`;
  });
  const isAnswerOpen = turns.at(-1)?.role === "assistant";
  return isAnswerOpen ? texts.join("") : `${texts.join("")}${write("assistant", "")}`;
}

/** `<|anything|>`: the format of both families' tokens. */
function breakAngleTokens(text: string): string {
  return text.replaceAll(/<\|(?=\w+\|>)/g, "<| ");
}

const mistralNames =
  "INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|CALL_ID|ARGS|THINK|" +
  "PREFIX|MIDDLE|SUFFIX|IMG|IMG_BREAK|IMG_END|control_\\d+";
const mistralTokens = new RegExp(`\\[(?=/?(?:${mistralNames})\\])|<(?=/?(?:s|unk|pad)>)`, "g");

function breakMistralTokens(text: string): string {
  return text.replaceAll(mistralTokens, "$& ");
}
