import { type Conversation, fieldOf } from "../../../domain/chat/conversation.ts";
import type { ThoughtSeal } from "../thinking/sent-thoughts.ts";
import type { UpstreamFailureDetails } from "../../../domain/errors/upstream-failure.ts";
import { isObject, parseJson } from "../../../domain/json-fields.ts";
import { failedKeyword, tooMuch } from "../answer-format/schema-check.ts";

/** The parts of a request that reading its answer depends on. */
export interface AnswerContext {
  /** The caller's names of tools, by the names that were sent, if they differ. */
  readonly toolNames: ReadonlyMap<string, string>;
  /** Tools, by sent name, whose input is the text of their one field `input`. */
  readonly textTools: ReadonlySet<string>;
  /**
   * The tool, by sent name, whose input is the JSON text that the caller wants as the answer;
   * alone, or in addition to the caller's own.
   */
  readonly answerTool: string | undefined;
  /** The caller used the deprecated `functions`, so a call is answered as `function_call`. */
  readonly usesFunctions: boolean;
  /** The seal of the model that answers. */
  readonly thoughtSeal: ThoughtSeal;
  /**
   * Stop sequences that were not sent to the model, at which the gateway ends the answer's text.
   */
  readonly stopSequences: readonly string[];
  /** The one stop sequence that was sent; undefined if there are none or several. */
  readonly sentStop: string | undefined;
  /** The check of a complete answer; undefined if there is none. */
  readonly check: AnswerCheck | undefined;
}

/** The `input` field of a tool that replaces a caller's tool of free text. */
export const textToolField = "input";

/** Describes what is wrong with a whole answer, without quoting it; undefined if nothing is. */
type AnswerCheck = (text: string) => UpstreamFailureDetails | undefined;

/** The check of answers to a request; undefined for one that requires no form. */
export function answerCheckOf(request: Conversation): AnswerCheck | undefined {
  const { format } = request;
  switch (format?.type) {
    case "json":
      return (text) => (isObject(parseJson(text)) ? undefined : unfit("it is not a JSON object"));
    case "schema": {
      const schema = format.schema ?? { type: "object" };
      const field = fieldOf(request, "format");
      return (text) => {
        const value = parseJson(text);
        if (value === undefined) return unfit("it is not JSON");
        const keyword = failedKeyword(value, schema);
        if (keyword === tooMuch) return uncheckable(field);
        return keyword === undefined ? undefined : unfit(`it fails the JSON schema's '${keyword}'`);
      };
    }
    case "text":
    case undefined:
      return undefined;
  }
}

function unfit(message: string): UpstreamFailureDetails {
  return { kind: "unfit-answer", message };
}

/** Caused by the caller's schema: checking another answer would most likely take as long. */
function uncheckable(param: string): UpstreamFailureDetails {
  return {
    kind: "unsupported",
    message:
      "Checking an answer against the JSON schema takes too many steps. Send a simpler schema.",
    param,
  };
}
