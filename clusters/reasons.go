package clusters

// Why a member is not live, or live and not engaged.
const (
	ReasonConnecting        = "Connecting"        // no answer yet, and none refused
	ReasonPaused            = "Paused"            // by annotation; nothing is sent to it
	ReasonDuplicateCluster  = "DuplicateCluster"  // the same cluster is served under another name
	ReasonConnectionRefused = "ConnectionRefused" // nothing listens at the address
	ReasonHostNotFound      = "HostNotFound"      // the server's name does not resolve
	ReasonTimeout           = "Timeout"
	ReasonTLSError          = "TLSError"
	ReasonUnauthorized      = "Unauthorized" // also a reason of the credentials
	ReasonForbidden         = "Forbidden"    // it may not read the namespace kube-system
	ReasonServerError       = "ServerError"  // an answer that is not that of a healthy API server
	ReasonUnknownServer     = "UnknownServer"
	ReasonConnectionLost    = "ConnectionLost"   // any other failure of the network
	ReasonEngagementFailed  = "EngagementFailed" // it answers, but the hub cannot work on it
)

// Why a kubeconfig is refused. ReasonExpired is reported of one that is in use.
const (
	ReasonExecNotAllowed          = "ExecNotAllowed"
	ReasonAuthProviderNotAllowed  = "AuthProviderNotAllowed"
	ReasonFileReferenceNotAllowed = "FileReferenceNotAllowed"
	ReasonBasicAuthNotAllowed     = "BasicAuthNotAllowed"
	ReasonInsecureTLSNotAllowed   = "InsecureTLSNotAllowed"
	ReasonServerNotAllowed        = "ServerNotAllowed"
	ReasonProxyNotAllowed         = "ProxyNotAllowed"
	ReasonImpersonationNotAllowed = "ImpersonationNotAllowed"
	ReasonExtensionsNotAllowed    = "ExtensionsNotAllowed"
	ReasonAmbiguous               = "Ambiguous"
	ReasonTooLarge                = "TooLarge"
	ReasonParseError              = "ParseError"
	ReasonMissingKey              = "MissingKey"
	ReasonBadCertificate          = "BadCertificate"
	ReasonBadToken                = "BadToken"
	ReasonNoCredentials           = "NoCredentials"
	ReasonExpired                 = "Expired"
)

// Why a Secret cannot be any member.
const (
	ReasonInvalidName = "InvalidName" // not a DNS-1123 subdomain
	ReasonNameTaken   = "NameTaken"   // by an older Secret
)
