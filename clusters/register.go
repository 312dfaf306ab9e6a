package clusters

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// What marks a Secret as a member and describes it.
const (
	LabelMember           = "fleetquota.io/member"                             // "true": the Secret is a member
	LabelMulticluster     = "sigs.k8s.io/multicluster-runtime-kubeconfig"      // the same, as others say it
	LabelClusterAPI       = "cluster.x-k8s.io/cluster-name"                    // the name that Cluster API gave
	TypeClusterAPI        = corev1.SecretType("cluster.x-k8s.io/secret")       // of the Secrets of Cluster API
	AnnotationName        = "fleetquota.io/cluster-name"                       // the member's name; absent: the Secret's
	AnnotationPause       = "fleetquota.io/skip-reconcile"                     // "true": leave the member alone
	AnnotationLocalStatus = "fleetquota.io/local-status"                       // who keeps the status of local quotas
	KeyKubeconfig         = "kubeconfig"                                       // the key of the kubeconfig
	KeyValue              = "value"                                            // the key of it, if there is no kubeconfig
	suffixClusterAPI      = "-kubeconfig"                                      // of the names of its kubeconfig Secrets
	annotationLastApplied = "kubectl.kubernetes.io/last-applied-configuration" // may hold the kubeconfig
	marked                = "true"
)

// selectors are what to watch, one after the other.
func (o SecretOptions) selectors() []metav1.ListOptions {
	all := []metav1.ListOptions{
		{LabelSelector: LabelMember + "=" + marked},
		{LabelSelector: LabelMulticluster + "=" + marked},
	}
	if o.ClusterAPI {
		all = append(all, metav1.ListOptions{
			LabelSelector: LabelClusterAPI,
			FieldSelector: "type=" + string(TypeClusterAPI),
		})
	}
	return all
}

// selects says whether a Secret is a member.
func (o SecretOptions) selects(s *corev1.Secret) bool {
	return s.Labels[LabelMember] == marked || s.Labels[LabelMulticluster] == marked || o.ofClusterAPI(s)
}

func (o SecretOptions) ofClusterAPI(s *corev1.Secret) bool {
	return o.ClusterAPI && s.Type == TypeClusterAPI &&
		s.Labels[LabelClusterAPI] != "" && strings.HasSuffix(s.Name, suffixClusterAPI)
}

// strip keeps in memory what is needed of a Secret, and no more: Cluster API
// labels the keys of its certificate authorities as it does its kubeconfigs.
func (o SecretOptions) strip(obj any) (any, error) {
	secret, ok := obj.(*corev1.Secret)
	if !ok {
		return obj, nil
	}
	kept := map[string][]byte{}
	if o.selects(secret) {
		for _, key := range []string{KeyKubeconfig, KeyValue} {
			if data, found := secret.Data[key]; found {
				kept[key] = data
			}
		}
	}
	secret.Data, secret.ManagedFields = kept, nil
	delete(secret.Annotations, annotationLastApplied)
	return secret, nil
}

// register reads what a Secret asks for. nil: nothing.
func (o SecretOptions) register(s *corev1.Secret) *registration {
	if !o.selects(s) {
		return nil
	}
	r := &registration{uid: s.UID, version: s.ResourceVersion, since: s.CreationTimestamp.Time}
	name := o.nameOf(s)
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		r.invalid = &Refusal{
			ReasonInvalidName,
			"the name of a member must be a DNS-1123 subdomain: lower case letters, digits, '-' and '.'",
		}
		return r
	}
	r.offer = Offer{
		Member: Member{
			Name:        name,
			Secret:      types.NamespacedName{Namespace: s.Namespace, Name: s.Name},
			Labels:      ownLabels(s.Labels),
			LocalStatus: s.Annotations[AnnotationLocalStatus],
			Paused:      s.Annotations[AnnotationPause] == marked,
		},
		Since: r.since,
	}
	r.offer.Login, r.offer.Refusal = o.loginOf(s)
	return r
}

func (o SecretOptions) nameOf(s *corev1.Secret) string {
	if name, given := s.Annotations[AnnotationName]; given {
		return name
	}
	if o.ofClusterAPI(s) {
		return s.Labels[LabelClusterAPI]
	}
	return s.Name
}

func (o SecretOptions) loginOf(s *corev1.Secret) (*Login, *Refusal) {
	data, found := s.Data[KeyKubeconfig]
	if !found {
		data, found = s.Data[KeyValue]
	}
	if !found {
		return nil, &Refusal{ReasonMissingKey, "the Secret has neither of the keys " + KeyKubeconfig + " and " + KeyValue}
	}
	return ParseKubeconfig(data, Allowances{Proxy: o.AllowProxy})
}

// ownLabels leaves out the labels that mark or manage the Secret, which say
// nothing of the cluster.
func ownLabels(labels map[string]string) map[string]string {
	own := map[string]string{}
	for key, value := range labels {
		if !marks(key) {
			own[key] = value
		}
	}
	return own
}

func marks(key string) bool {
	if key == LabelMember || key == LabelMulticluster {
		return true
	}
	domain, _, found := strings.Cut(key, "/")
	if !found {
		return false
	}
	for _, tool := range []string{"app.kubernetes.io", "helm.sh", "argoproj.io", "fluxcd.io", "cluster.x-k8s.io"} {
		if domain == tool || strings.HasSuffix(domain, "."+tool) {
			return true
		}
	}
	return false
}
