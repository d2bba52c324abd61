import type { AdjustedFields } from "../../../domain/chat/adjusted-fields.ts";
import { unsupported } from "../failures/refusal.ts";
import type { BedrockModelSettings } from "../settings.ts";

/** Collects the fields of one request that are not sent as the caller wrote them. */
export class Adjustments {
  readonly #dropsUnsupported: boolean;
  readonly #fields = new Map<string, string | number>();

  constructor({ dropUnsupported }: Pick<BedrockModelSettings, "dropUnsupported">) {
    this.#dropsUnsupported = dropUnsupported;
  }

  get fields(): AdjustedFields {
    return this.#fields;
  }

  /** Changes a field, whatever the operator's setting for unsupported ones. */
  sendAs(field: string, sent: string | number): void {
    this.#fields.set(field, sent);
  }

  /**
   * The model cannot honour a field: it is changed or, by default, dropped if the operator allows
   * it. Otherwise throws `unsupported` with `message`, which explains what to change.
   */
  dropOrRefuse(field: string, message: string, sent: string | number = "dropped"): void {
    if (!this.#dropsUnsupported) throw unsupported(field, message);
    this.sendAs(field, sent);
  }
}
