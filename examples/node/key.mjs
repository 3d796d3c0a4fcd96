// Key of a turn: tenant/user/session, percent-encoded. encodeURIComponent does not encode !'()*, but the key needs it.
const part = (id) =>
  encodeURIComponent(id).replace(/[!'()*]/g, (c) => "%" + c.charCodeAt(0).toString(16).toUpperCase());

export const sessionKey = (turn) => [turn.tenant_id, turn.user_id, turn.session_id].map(part).join("/");
