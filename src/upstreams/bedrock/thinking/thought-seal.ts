import { createHash } from "node:crypto";
import type { ReasoningBlock } from "../../../domain/chat/chat.ts";
import { foundationModelOf } from "../models/model-families.ts";

/**
 * A model recognises only its own unchanged thoughts, and refuses a whole request that contains
 * others. So thoughts are sealed for callers: the provider's signature is preceded by a digest of
 * the signature, of the thoughts, and of the model. Thoughts without a valid seal are not sent on.
 */
export class ThoughtSeal {
  readonly #model: string;

  /** A foundation model is the same in all its profiles. Behind an ARN, the ARN identifies it. */
  constructor(identifier: string) {
    this.#model = foundationModelOf(identifier) ?? identifier;
  }

  seal(block: ReasoningBlock): ReasoningBlock {
    switch (block.kind) {
      case "signed":
        return { ...block, signature: this.#sealed(block.text, block.signature) };
      case "redacted":
        return { ...block, data: this.#sealed("", block.data) };
    }
  }

  /** The block as the model wrote it; undefined for one that this model did not write like that. */
  open(block: ReasoningBlock): ReasoningBlock | undefined {
    switch (block.kind) {
      case "signed": {
        const signature = this.#opened(block.text, block.signature);
        return signature === undefined ? undefined : { ...block, signature };
      }
      case "redacted": {
        const data = this.#opened("", block.data);
        return data === undefined ? undefined : { ...block, data };
      }
    }
  }

  #sealed(text: string, secret: string): string {
    return `${this.#digest(text, secret)}.${secret}`;
  }

  #opened(text: string, sealed: string): string | undefined {
    const secret = sealed.slice(digestLength + 1);
    return this.#sealed(text, secret) === sealed ? secret : undefined;
  }

  #digest(text: string, secret: string): string {
    const hash = createHash("sha256");
    for (const part of [this.#model, secret, text]) hash.update(part).update("\0");
    return hash.digest("base64url").slice(0, digestLength);
  }
}

/** In characters. Only chance matches must be excluded: forging a seal has no benefit. */
const digestLength = 16;
