import { createHash } from "node:crypto";
import type { AnswerReasoning } from "../../domain/chat/answer.ts";
import type { ReasoningBlock } from "../../domain/chat/conversation.ts";

/**
 * A model recognises only its own unchanged thoughts, and refuses a whole request that contains
 * others. So thoughts are sealed for callers: the provider's signature is preceded by a digest of
 * the signature, of the thoughts, and of the model. Thoughts without a valid seal are not sent on.
 */
export class ThoughtSeal {
  readonly #model: string;

  /** `model`: what tells it from others that do not recognise its thoughts. */
  constructor(model: string) {
    this.#model = model;
  }

  /** A thought for the caller; unchanged if its provider does not expect it back. */
  seal(block: AnswerReasoning): AnswerReasoning {
    const { opaque } = block;
    return opaque === undefined ? block : { ...block, opaque: this.#sealed(textOf(block), opaque) };
  }

  /** The opaque value without the seal; undefined for a thought that this model did not write. */
  open(block: ReasoningBlock): string | undefined {
    const { opaque } = block;
    if (opaque === undefined) return undefined;
    const secret = opaque.slice(digestLength + 1);
    return this.#sealed(textOf(block), secret) === opaque ? secret : undefined;
  }

  #sealed(text: string, secret: string): string {
    return `${this.#digest(text, secret)}.${secret}`;
  }

  #digest(text: string, secret: string): string {
    const hash = createHash("sha256");
    for (const part of [this.#model, secret, text]) hash.update(part).update("\0");
    return hash.digest("base64url").slice(0, digestLength);
  }
}

/** Callers may show a redacted thought as any text. */
function textOf({ text, isRedacted }: AnswerReasoning): string {
  return isRedacted === true ? "" : text;
}

/** In characters. Only chance matches must be excluded: forging a seal has no benefit. */
const digestLength = 16;
