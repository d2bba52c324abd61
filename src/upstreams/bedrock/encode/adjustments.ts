import type { AdjustedFields } from "../../../domain/chat/adjusted-fields.ts";
import { unsupported } from "../failures/refusal.ts";
import type { BedrockModelSettings } from "../settings.ts";

/** Collects what of one request is not sent as the caller wrote it. */
export class Adjustments {
  readonly #dropsUnsupported: boolean;
  readonly #fields = new Map<string, string | number>();

  constructor({ dropUnsupported }: Pick<BedrockModelSettings, "dropUnsupported">) {
    this.#dropsUnsupported = dropUnsupported;
  }

  get fields(): AdjustedFields {
    return this.#fields;
  }

  /** A field goes as something else, whatever the operator says of unsupported ones. */
  sendAs(field: string, sent: string | number): void {
    this.#fields.set(field, sent);
  }

  /**
   * The model cannot honour a field: it goes as something else or, by default, not at all, where the
   * operator allows it. Otherwise throws `unsupported` with `message`, which says what to change.
   */
  dropOrRefuse(field: string, message: string, sent: string | number = "dropped"): void {
    if (!this.#dropsUnsupported) throw unsupported(field, message);
    this.sendAs(field, sent);
  }
}
