import { spoiledBody, type BodyDetails } from "../../faults/spoiled-body.ts";
import type { Reply } from "../../frame.ts";
import type { JsonRecord } from "../../read-json.ts";
import { errorReply } from "../bedrock-error.ts";
import { streamException } from "../exceptions.ts";

/** A whole answer, spoiled as the fault says; exceptions within streams are refusals here. */
export function bodyReply(body: JsonRecord, details: BodyDetails): Reply {
  const exception = streamException(details.fault.mode);
  return exception === undefined ? spoiledBody(body, details) : errorReply(exception.error);
}
