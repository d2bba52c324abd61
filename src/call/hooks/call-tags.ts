import { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { UsageRecord } from "../../domain/usage/usage.ts";
import type { CallHook, HookPoints } from "../../snapshot/call-hooks.ts";

/** A call that carried a tag. */
export interface TaggedCall {
  readonly tag: string;
  readonly record: UsageRecord;
  /** Parts of the answer sent to the caller; 1 for a whole answer. */
  readonly parts: number;
}

export interface CallTagsOptions {
  /** Name of the header, in lower case. */
  readonly header: string;
  readonly onTagged: (call: TaggedCall) => void;
}

const wellFormed = /^[A-Za-z0-9._:/-]{1,64}$/;

/**
 * Tags calls: the value of a request header is sent to the upstream under the same name and
 * reported at the end of the call, so that operators can group usage by team or feature.
 */
export function callTags({ header, onTagged }: CallTagsOptions): CallHook {
  return {
    name: "call_tag",
    begin({ headers }): HookPoints | undefined {
      const tag = headers.get(header);
      if (tag === null) return undefined;
      let parts = 0;
      return {
        requestRead(asked) {
          if (wellFormed.test(tag)) return asked;
          throw new GatewayError("invalid_value", {
            message: `Invalid header '${header}': must be 1 to 64 letters, digits or any of . _ : / -`,
            param: header,
          });
        },
        beforeSend: (request) => ({
          ...request,
          headers: { ...request.headers, [header]: tag },
        }),
        answering(part) {
          parts += 1;
          return part;
        },
        callClosed: (record) => onTagged({ tag, record, parts }),
      };
    },
  };
}
