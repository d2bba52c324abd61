/** Errors in the content of a request body: part of the table in `gateway-error.ts`. */
export const bodyErrors = {
  invalid_json: {
    status: 400,
    type: "invalid_request_error",
    code: null,
    when: "The body is not JSON, cannot be decoded, or is too deep or complex.",
  },
  invalid_body: {
    status: 400,
    type: "invalid_request_error",
    code: null,
    when: "A value is invalid, or fields contradict each other; see `param`.",
  },
  missing_required_parameter: {
    status: 400,
    type: "invalid_request_error",
    code: "missing_required_parameter",
    when: "A required field is absent.",
  },
  invalid_type: {
    status: 400,
    type: "invalid_request_error",
    code: "invalid_type",
    when: "A field has the wrong JSON type.",
  },
  invalid_value: {
    status: 400,
    type: "invalid_request_error",
    code: "invalid_value",
    when: "A field has a value outside its set or pattern.",
  },
  empty_array: {
    status: 400,
    type: "invalid_request_error",
    code: "empty_array",
    when: "An array needs at least one item.",
  },
  array_above_max_length: {
    status: 400,
    type: "invalid_request_error",
    code: "array_above_max_length",
    when: "An array has too many items.",
  },
  empty_string: {
    status: 400,
    type: "invalid_request_error",
    code: "empty_string",
    when: "A text needs at least one character.",
  },
  string_above_max_length: {
    status: 400,
    type: "invalid_request_error",
    code: "string_above_max_length",
    when: "A text is too long.",
  },
  object_above_max_properties: {
    status: 400,
    type: "invalid_request_error",
    code: "object_above_max_properties",
    when: "An object has too many entries.",
  },
  integer_below_min_value: {
    status: 400,
    type: "invalid_request_error",
    code: "integer_below_min_value",
    when: "An integer is too small.",
  },
  integer_above_max_value: {
    status: 400,
    type: "invalid_request_error",
    code: "integer_above_max_value",
    when: "An integer is too large.",
  },
  decimal_below_min_value: {
    status: 400,
    type: "invalid_request_error",
    code: "decimal_below_min_value",
    when: "A number is too small.",
  },
  decimal_above_max_value: {
    status: 400,
    type: "invalid_request_error",
    code: "decimal_above_max_value",
    when: "A number is too large.",
  },
  invalid_image_url: {
    status: 400,
    type: "invalid_request_error",
    code: "invalid_image_url",
    when: "An image address is not allowed or cannot be read.",
  },
  unsupported_parameter: {
    status: 400,
    type: "invalid_request_error",
    code: "unsupported_parameter",
    when: "The model does not support a field that would change the answer.",
  },
} as const;
