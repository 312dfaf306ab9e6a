package fleet

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Files of a cluster's pki folder.
const (
	pkiFolder    = "pki"
	caCert       = "ca.crt"
	caKey        = "ca.key"
	servingCert  = "apiserver.crt"
	servingKey   = "apiserver.key"
	accountsKey  = "service-accounts.key"
	validity     = 365 * 24 * time.Hour
	clockSkew    = 5 * time.Minute
	serviceRange = "10.96.0.0/16"
	serviceIP    = "10.96.0.1" // of the service kubernetes
)

// keyPair is a certificate and its key, both as PEM.
type keyPair struct {
	cert, key []byte
}

// authority signs the certificates of one cluster.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
	pem  keyPair
}

func newAuthority(name string) (*authority, error) {
	template := certificate(name+"-ca", nil)
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	pair, err := sign(template, template, key, key)
	if err != nil {
		return nil, err
	}
	return parseAuthority(pair)
}

// loadAuthority reads the CA of a cluster from its pki folder.
func loadAuthority(dir string) (*authority, error) {
	cert, err := os.ReadFile(filepath.Join(dir, pkiFolder, caCert))
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(filepath.Join(dir, pkiFolder, caKey))
	if err != nil {
		return nil, err
	}
	return parseAuthority(keyPair{cert: cert, key: key})
}

func parseAuthority(pair keyPair) (*authority, error) {
	certBlock, _ := pem.Decode(pair.cert)
	keyBlock, _ := pem.Decode(pair.key)
	if certBlock == nil || keyBlock == nil {
		return nil, errors.New("the CA is not PEM")
	}
	cert, err := x509.ParseCertificate(certBlock.Bytes)
	if err != nil {
		return nil, err
	}
	signer, err := parseKey(keyBlock.Bytes)
	if err != nil {
		return nil, err
	}
	return &authority{cert: cert, key: signer, pem: pair}, nil
}

// client issues a certificate for a user of the API.
func (a *authority) client(user string, groups []string) (keyPair, error) {
	template := certificate(user, groups)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.issue(template)
}

// server issues the certificate with which kube-apiserver serves.
func (a *authority) server() (keyPair, error) {
	template := certificate("kube-apiserver", nil)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.DNSNames = []string{
		"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc.cluster.local",
	}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, net.ParseIP(serviceIP)}
	return a.issue(template)
}

func (a *authority) issue(template *x509.Certificate) (keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, err
	}
	return sign(template, a.cert, key, a.key)
}

func certificate(commonName string, organizations []string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: new(big.Int).SetInt64(now.UnixNano()),
		Subject:      pkix.Name{CommonName: commonName, Organization: organizations},
		NotBefore:    now.Add(-clockSkew),
		NotAfter:     now.Add(validity),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
}

func sign(template, parent *x509.Certificate, key *ecdsa.PrivateKey, signer crypto.Signer) (keyPair, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return keyPair{}, fmt.Errorf("sign the certificate of %s: %w", template.Subject.CommonName, err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return keyPair{}, err
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return keyPair{cert: cert, key: keyPEM}, nil
}
