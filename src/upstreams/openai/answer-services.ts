import type { OnUnknownFinish } from "../shared/finish-words.ts";
import type { CallOrigins } from "./call-origin.ts";

/** What reading an answer needs from outside. */
export interface AnswerServices {
  readonly newToolCallId: () => string;
  readonly onUnknownFinish: OnUnknownFinish;
  readonly origins: CallOrigins;
}
